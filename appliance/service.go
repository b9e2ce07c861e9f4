package appliance

import (
	"context"
	"errors"
	"sync"

	"ganglion/appliance/media/film"
	"ganglion/plugins/sampling"
)

// Service completes prompts with the model it was given last. All methods are safe
// for concurrent use.
type Service struct {
	cfg Config

	mu         sync.Mutex
	current    *scheduler
	schedulers map[*scheduler]bool // the current one and those that still drain
	live       sync.WaitGroup      // goroutines of schedulers and loads
	closed     bool
	loading    *loading
	loadError  string
}

// NewService makes a service without a model.
func NewService(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg.withDefaults(), schedulers: make(map[*scheduler]bool)}, nil
}

// Start checks a request, opens its record and queues it. Every refusal is made
// here, as an *Error, before there is any output; refused requests leave no record.
// When ctx ends, the completion is cancelled; where it has ended already, nothing is begun.
func (s *Service) Start(ctx context.Context, r *Request) (*Completion, error) {
	for {
		sch, err := s.serving()
		if err != nil {
			return nil, err
		}
		c, err := s.start(ctx, sch, r)
		if !errors.Is(err, errRetired) {
			return c, err
		}
		// The model was replaced in the meantime: the new one decides.
	}
}

// serving returns the scheduler of the model that serves now.
func (s *Service) serving() (*scheduler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, Errorf(CodeShutdown, "", "the server is shutting down")
	case s.current != nil:
		return s.current, nil
	case s.loading != nil:
		err := Errorf(CodeLoading, "", "the model is being loaded; try again in a moment")
		err.RetryAfter = loadRetry
		return nil, err
	}
	return nil, Errorf(CodeNoModel, "", "no model is loaded")
}

// start queues a request with one scheduler.
func (s *Service) start(ctx context.Context, sch *scheduler, r *Request) (*Completion, error) {
	plugins, from, err := sch.choosePlugins(ctx, r)
	if err != nil {
		return nil, err
	}
	q, err := s.prepare(ctx, sch, r)
	if err == nil {
		err = sch.reserve()
	}
	if err == nil && q.media != nil && q.max > 0 {
		if err = sch.encode(ctx, q); err != nil {
			sch.giveBack()
		}
	}
	if err != nil {
		release(plugins)
		return nil, err
	}
	q.record.Params = append(q.record.Params, pluginParams(plugins, from)...)
	s.cfg.begin(ctx, q.record)
	q.record.Files = nil // who wants them has them now
	q.queued = s.cfg.Now()
	if q.max == 0 {
		release(plugins)
		// Nothing is to be generated, so no slot is needed.
		q.reason = FinishLength
		sch.leave(q, false)
		sch.signal()
		return q.c, nil
	}
	cancel := func() {}
	if len(plugins)+len(s.cfg.ShadowPlugins) > 0 {
		var whole context.Context // ends with the text, and where that is closed
		whole, cancel = context.WithCancel(ctx)
		q.c.release = cancel
		if q.err = guard("open plugins", func() error { return sch.openPlugins(whole, q, r, plugins) }); q.err != nil {
			sch.leave(q, false)
			sch.signal()
			return q.c, nil
		}
		q.queued = s.cfg.Now()
	}
	if q.media != nil { // no plugin writes the prompt anew any more
		q.media.forget()
	}
	q.c.wake = func() {
		cancel()
		sch.stopForsaken()
		sch.signal()
	}
	stop := context.AfterFunc(ctx, q.c.Close)
	q.c.release = func() {
		stop()
		cancel()
	}
	if ctx.Err() != nil {
		q.c.Close() // not later, in a goroutine of its own: nothing is begun
	}
	sch.submit(q)
	return q.c, nil
}

// prepare resolves a request into a sequence, or refuses it.
func (s *Service) prepare(ctx context.Context, sch *scheduler, r *Request) (*sequence, error) {
	now, info := s.cfg.Now(), sch.model.Info()
	prompt, media, fault := sch.tokenize(ctx, r)
	if fault != nil {
		return nil, fault
	}
	room, tooLong := roomAfter(prompt, sch.info.Context)
	set, fault := resolve(r, &s.cfg, &sch.info, sch.vocab, room)
	if fault != nil {
		return nil, fault
	}
	if tooLong != nil {
		return nil, tooLong
	}
	if fault := sch.readable(r, media); fault != nil {
		return nil, fault
	}
	mode, from, fault := sch.mode(r)
	if fault != nil {
		return nil, fault
	}
	if media != nil && mode == SpeculateDraft {
		mode = SpeculateOff // the smaller model has no eyes
	}
	set.params = append(set.params, Param{Name: "speculate", Value: string(mode), Origin: from})
	var stages *stageNotes
	if r.StageChanges { // where there are plugins, their pipeline hears it
		stages = new(stageNotes)
		set.sampling.Watcher = stages
	}
	chain, err := sampling.New(set.sampling)
	if err != nil {
		return nil, Errorf(CodeInvalid, "", "%s", err)
	}
	id := r.ID
	if id == "" {
		id = NewID()
	}
	q := &sequence{
		c: newCompletion(id), created: now, arrived: r.Received,
		record: newRecord(id, r, &info, set, now),
		prompt: prompt, tokens: prompt, media: media, lora: set.adapters, max: set.maxTokens, ahead: ahead{mode: mode, limit: s.cfg.DraftMax}, sampling: set.sampling, chain: chain, alts: set.sampling.TopLogprobs,
		flow: newTextFlow(sch.vocab, set.stop), warn: warnings(r), stages: stages,
	}
	if q.arrived.IsZero() {
		q.arrived = now
	}
	if media != nil {
		q.record.Media, q.record.Files = media.notes(sch.vocab), media.files()
	}
	return q, nil
}

// Use makes m the model that serves new requests, and owns it from now on. Requests
// that are running or queued stay with the model they were given to; it is closed
// when the last of them is over.
func (s *Service) Use(m Model) {
	sch := newScheduler(&s.cfg, m)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		m.Close()
		return
	}
	old := s.current
	s.current = sch
	s.schedulers[sch] = true
	s.live.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.live.Done()
		sch.run()
		s.mu.Lock()
		delete(s.schedulers, sch)
		s.mu.Unlock()
	}()
	if old != nil {
		old.retire()
	}
}

// Vocabulary returns the vocabulary of the model that serves now.
func (s *Service) Vocabulary() (Vocabulary, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, false
	}
	return s.current.vocab, true
}

// Status returns what the service can do right now.
func (s *Service) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{State: StateNoModel, Films: film.Status{State: film.Absent}, Error: s.loadError, QueueMax: s.cfg.QueueMax}
	if s.cfg.Film != nil {
		st.Films = s.cfg.Film.Status()
	}
	if s.loading != nil {
		st.State = StateLoading
		p := s.loading.progress
		st.Loading = &p
	}
	if s.current != nil && !s.closed {
		st.State = StateReady
		info := s.current.model.Info()
		st.Model = &info
		for i, scale := range s.cfg.defaultScales(info.Adapters) {
			st.Adapters = append(st.Adapters, AdapterStatus{info.Adapters[i], scale})
		}
		if e := s.current.eyes; e != nil {
			info := e.encoder.Info()
			st.Encoder = &info
		}
	}
	for sch := range s.schedulers {
		running, queued := sch.load()
		st.Running += running
		st.Queued += queued
	}
	return st
}

// Close takes no more requests and waits for those it has; when ctx ends first it
// cancels them, which takes one token, and returns ctx's error. All goroutines have
// ended and all models are closed when it returns. It may be called twice.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	if s.loading != nil {
		s.loading.cancel()
	}
	for sch := range s.schedulers {
		sch.retire()
	}
	s.mu.Unlock()

	drained := make(chan struct{})
	go func() {
		s.live.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for sch := range s.schedulers {
		sch.cancelAll()
	}
	s.mu.Unlock()
	<-drained
	return ctx.Err()
}
