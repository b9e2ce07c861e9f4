package web

import (
	"context"
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ganglion/appliance"
)

// Metrics counts what the server does, in a registry of its own. What it says of
// completions it takes from their records on the way to the log (see
// [Metrics.Recorder]), so that the counters and the rows cannot disagree. It is
// safe for concurrent use.
type Metrics struct {
	registry    *prometheus.Registry
	handler     http.Handler
	requests    *prometheus.CounterVec
	completions *prometheus.CounterVec
	open        prometheus.Gauge
	tokens      *prometheus.CounterVec
	queue       prometheus.Histogram
	firstToken  prometheus.Histogram
	perToken    prometheus.Histogram
}

// NewMetrics makes metrics that have counted nothing.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ganglion_http_requests_total", Help: "HTTP requests by route, method and status."},
			[]string{"route", "method", "status"}),
		completions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ganglion_completions_total", Help: "Ended completions by outcome: one for each closed row of the log."},
			[]string{"outcome"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ganglion_completions_open", Help: "Completions that have a row and have not ended."}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ganglion_tokens_total", Help: "Tokens by kind; cached ones are prompt tokens that were not computed again, drafted ones were guessed ahead, and accepted ones of these became text."},
			[]string{"kind"}),
		queue: histogram("ganglion_queue_seconds", "Time from arrival to a slot.", 1e-4),
		firstToken: histogram("ganglion_first_token_seconds",
			"Time from arrival to the first token.", 1e-3),
		perToken: histogram("ganglion_decode_token_seconds",
			"Time of one decoded token, averaged over its completion.", 1e-4),
	}
	m.registry.MustRegister(m.requests, m.completions, m.open, m.tokens, m.queue, m.firstToken, m.perToken,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
	// Every outcome is there from the start, so that a rate over it is defined.
	for _, o := range []appliance.Outcome{appliance.OutcomeStop, appliance.OutcomeLength, appliance.OutcomeCancelled, appliance.OutcomeError} {
		m.completions.WithLabelValues(string(o))
	}
	return m
}

// histogram has buckets from first seconds up, each twice the one before, over a
// range of 2^17: from a tenth of a millisecond to 13 s.
func histogram(name, help string, first float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, 2, 18),
	})
}

// observe adds what is read from a server at the time of asking. Of several
// servers with the same metrics the first is asked.
func (m *Metrics) observe(s *Server) {
	gauge := func(name, help string, f func() float64) {
		_ = m.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	gauge("ganglion_running", "Sequences being decoded.", func() float64 { return float64(s.cfg.Status().Running) })
	gauge("ganglion_queued", "Requests waiting for a slot.", func() float64 { return float64(s.cfg.Status().Queued) })
	gauge("ganglion_ready", "1 when a token can be produced.", func() float64 {
		if s.cfg.Status().State == appliance.StateReady {
			return 1
		}
		return 0
	})
	if s.cfg.Log != nil {
		_ = m.registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "ganglion_log_dropped_total", Help: "Records that the log could not keep."},
			func() float64 { return float64(s.cfg.Log.Status().Dropped) }))
	}
	_ = m.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ganglion_build_info", Help: "Version of this binary; always 1.",
		ConstLabels: prometheus.Labels{"version": s.cfg.Version}}, func() float64 { return 1 }))
}

func (m *Metrics) request(route, verb string, status int) {
	m.requests.WithLabelValues(route, method(verb), strconv.Itoa(status)).Inc()
}

// metricsPage answers GET /metrics.
func (s *Server) metricsPage(w *response, r *http.Request, _ httprouter.Params) error {
	s.metrics.handler.ServeHTTP(w, r)
	return nil
}

// Recorder counts the records that pass through it to next.
func (m *Metrics) Recorder(next appliance.Recorder) appliance.Recorder {
	return counting{m: m, next: next}
}

type counting struct {
	m    *Metrics
	next appliance.Recorder
}

func (c counting) Begin(ctx context.Context, r *appliance.Record) {
	c.m.open.Inc()
	c.next.Begin(ctx, r)
}

func (c counting) End(r *appliance.Record) {
	m := c.m
	m.open.Dec()
	m.completions.WithLabelValues(string(r.Outcome)).Inc()
	m.tokens.WithLabelValues("prompt").Add(float64(r.PromptTokens))
	m.tokens.WithLabelValues("cached").Add(float64(r.CachedTokens))
	m.tokens.WithLabelValues("drafted").Add(float64(r.DraftedTokens))
	m.tokens.WithLabelValues("accepted").Add(float64(r.AcceptedTokens))
	m.tokens.WithLabelValues("completion").Add(float64(r.CompletionTokens))
	if r.CompletionTokens > 0 {
		m.queue.Observe(r.QueueMS / 1000)
		m.firstToken.Observe(r.FirstTokenMS / 1000)
		m.perToken.Observe(r.DecodeMS / 1000 / float64(r.CompletionTokens))
	}
	c.next.End(r)
}
