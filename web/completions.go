package web

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
	"ganglion/web/api"
)

// detailsOfStages asks for what built-in stages did to each token, beside all that 1 asks for.
const detailsOfStages = "stages"

// defaultTop is the number of alternatives per token on Ganglion-Details: 1 when
// the request does not say.
const defaultTop = 5

// completions answers POST /v1/completions.
func (s *Server) completions(w *response, r *http.Request, _ httprouter.Params) error {
	received := s.cfg.Now()
	data, release, err := s.readBody(w, r, s.cfg.MaxBody)
	defer release()
	if err != nil {
		return err
	}
	req, err := api.DecodeCompletion(data, s.cfg.Media)
	if err != nil {
		return err
	}
	letGo, err := s.holdFiles(r.Context(), req.Params.Media, len(data))
	defer letGo()
	if err != nil {
		return err
	}
	if err := pluginHeader(r.Header, req); err != nil {
		return err
	}
	details := r.Header.Get("Ganglion-Details") == "1" || r.Header.Get("Ganglion-Details") == detailsOfStages
	if details {
		req.Params.StageChanges = r.Header.Get("Ganglion-Details") == detailsOfStages
		req.Params.Logprobs = true
		req.Params.PluginChanges = true
		if req.Params.TopLogprobs == 0 {
			req.Params.TopLogprobs = defaultTop
		}
	}
	req.Params.Received = received
	req.Params.Route = "POST /v1/completions"
	req.Params.Client = clientName(r.UserAgent())

	a := &answer{s: s, req: req, details: details, created: received.Unix()}
	defer a.close()
	if err := a.start(r.Context()); err != nil {
		return err
	}
	if req.Params.Stream {
		return a.stream(r.Context(), w)
	}
	return a.whole(r.Context(), w)
}

// clientName shortens a User-Agent to something fit for the log.
func clientName(agent string) string {
	agent = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, agent)
	return cut(agent, 120)
}

// answer is the work on one request: its completions, one for each choice, and
// what their pieces look like on the wire.
type answer struct {
	s       *Server
	req     *api.CompletionRequest
	details bool
	created int64
	id      string // of the answer: that of its first completion
	model   string
	info    modelPlace
	running []Completion
	runes   []int // characters of each choice sent so far, for text_offset
}

// modelPlace is where the model ran when the request began.
type modelPlace struct{ backend, numerics string }

// start starts a completion for each choice. If one is refused, all are.
func (a *answer) start(ctx context.Context) error {
	if m := a.s.cfg.Status().Model; m != nil {
		a.model, a.info = m.Name, modelPlace{m.Backend, m.Numerics}
	}
	n := a.req.Choices()
	a.runes = make([]int, n)
	for i := range n {
		r := a.req.Choice(i)
		r.ID = a.s.cfg.NewID()
		if i == 0 {
			a.id = r.ID
		}
		c, err := a.s.cfg.Completer.Start(ctx, r)
		if err != nil {
			return a.renamed(err)
		}
		a.running = append(a.running, c)
	}
	return nil
}

// renamed makes an error about the limit name the field that was sent.
func (a *answer) renamed(err error) error {
	const field, alias = "max_completion_tokens", "max_tokens"
	var e *appliance.Error
	if !a.req.MaxAlias || !errors.As(err, &e) || e.Param != field {
		return err
	}
	return &appliance.Error{Code: e.Code, Param: alias, Message: strings.ReplaceAll(e.Message, field, alias)}
}

// close ends what still runs: after a refusal, or when the client has left.
func (a *answer) close() {
	for _, c := range a.running {
		c.Close()
	}
}

// whole waits for every choice and answers once.
func (a *answer) whole(ctx context.Context, w *response) error {
	out := a.envelope(nil)
	results := make([]*appliance.Result, len(a.running))
	for i, c := range a.running {
		res, err := c.Wait(ctx)
		if err != nil {
			tellPlugins(w, pluginsOf(err))
			return a.renamed(err)
		}
		results[i] = res
		choice := a.choice(i, res.Text, res.Tokens, res.Finish)
		if a.details && len(a.running) > 1 {
			choice.Ganglion = a.ganglion(res)
		}
		out.Choices = append(out.Choices, choice)
	}
	out.Model = results[0].Model
	out.Usage = a.usage(results)
	if a.details {
		out.Ganglion = a.ganglion(results[0])
	}
	tellPlugins(w, pluginSummary(results))
	w.json(http.StatusOK, encode(out))
	return nil
}

// envelope is an answer or chunk around choices.
func (a *answer) envelope(choices []api.Choice) api.Completion {
	return api.Completion{ID: a.id, Object: api.ObjectCompletion, Created: a.created, Model: a.model, Choices: choices}
}

// choice is a piece of a choice, or all of it.
func (a *answer) choice(index int, text string, tokens []appliance.Token, finish appliance.FinishReason) api.Choice {
	c := api.Choice{Text: text, Index: index}
	switch a.req.Logprobs {
	case api.LogprobNumbers:
		numbers := make([]float64, len(tokens))
		for i, t := range tokens {
			numbers[i] = finite(t.Logprob)
		}
		c.Logprobs = numbers
	case api.LogprobObject:
		c.Logprobs = a.logprobObject(index, tokens)
	}
	if a.details || a.req.Logprobs == api.LogprobNumbers && a.req.Params.TopLogprobs > 0 {
		c.Details = detailsOf(tokens)
	}
	if finish != "" {
		c.FinishReason = &finish
	}
	return c
}

func (a *answer) logprobObject(index int, tokens []appliance.Token) *api.LogprobsObject {
	o := &api.LogprobsObject{
		Tokens:        make([]string, len(tokens)),
		TokenLogprobs: make([]float64, len(tokens)),
		TopLogprobs:   make([]map[string]float64, len(tokens)),
		TextOffset:    make([]int, len(tokens)),
	}
	for i, t := range tokens {
		o.Tokens[i], o.TokenLogprobs[i], o.TextOffset[i] = t.Text, finite(t.Logprob), a.runes[index]
		a.runes[index] += utf8.RuneCountInString(t.Text)
		// Several tokens may have one text, such as halves of a character: the most
		// likely one stands for it.
		top := map[string]float64{t.Text: finite(t.Logprob)}
		for _, alt := range t.Top {
			if p, ok := top[alt.Text]; !ok || alt.Logprob > p {
				top[alt.Text] = finite(alt.Logprob)
			}
		}
		o.TopLogprobs[i] = top
	}
	return o
}

func detailsOf(tokens []appliance.Token) *api.Details {
	d := &api.Details{Tokens: make([]api.TokenDetail, len(tokens))}
	for i, t := range tokens {
		top := make([]api.TopDetail, len(t.Top))
		for j, alt := range t.Top {
			top[j] = api.TopDetail{ID: alt.ID, Text: alt.Text, Logprob: finite(alt.Logprob)}
		}
		d.Tokens[i] = api.TokenDetail{ID: t.ID, Text: t.Text, Logprob: finite(t.Logprob), Offset: t.Offset, Top: top}
		for _, c := range t.Changes {
			change := api.TokenChange{Plugin: c.Plugin, Stage: c.Stage, Kind: c.Kind, Left: c.Left, Temperature: c.Temperature}
			if c.From != nil {
				change.From = &api.ChangeFrom{ID: c.From.ID, Text: c.From.Text}
			}
			d.Tokens[i].Changes = append(d.Tokens[i].Changes, change)
		}
	}
	return d
}

// lowestLogprob stands for the logarithm of a probability that is too small for a
// number: JSON has no infinities.
const lowestLogprob = -1e4

func finite(logprob float64) float64 {
	if math.IsNaN(logprob) {
		return lowestLogprob
	}
	return max(lowestLogprob, min(0, logprob))
}

// usage counts each prompt once, however many choices it has.
func (a *answer) usage(results []*appliance.Result) *api.Usage {
	u := &api.Usage{}
	for i, r := range results {
		if i%a.req.N == 0 {
			u.PromptTokens += r.Usage.PromptTokens
		}
		u.CompletionTokens += r.Usage.CompletionTokens
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

// ganglion tells how a completion came about.
func (a *answer) ganglion(r *appliance.Result) *api.Ganglion {
	ms := func(d interface{ Seconds() float64 }) float64 { return d.Seconds() * 1000 }
	g := &api.Ganglion{
		Plugins: appliance.OwnReports(r.Plugins), PluginMeta: pluginMeta(appliance.OwnMeta(r.PluginMeta)),
		ID: r.ID, Seed: r.Seed, Params: r.Params, Warnings: r.Warnings,
		CachedTokens: r.Usage.CachedTokens, Drafted: r.DraftedTokens, Accepted: r.AcceptedTokens, Model: r.Model, Backend: r.Backend, Numerics: a.info.numerics,
		Timings: api.Timings{
			QueueMS: ms(r.Timings.Queue), PrefillMS: ms(r.Timings.Prefill),
			DecodeMS: ms(r.Timings.Decode), FirstTokenMS: ms(r.Timings.FirstToken),
		},
	}
	if s := r.Timings.Decode.Seconds(); s > 0 {
		g.Timings.TokensPerSecond = float64(r.Usage.CompletionTokens) / s
	}
	if g.Params == nil {
		g.Params = []appliance.Param{}
	}
	if g.Warnings == nil {
		g.Warnings = []string{}
	}
	return g
}
