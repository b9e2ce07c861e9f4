package appliance

import (
	"context"
	"errors"
	"time"
)

// loadRetry is when a client may ask again while the first model is being loaded.
const loadRetry = 2 * time.Second

// loading is a model on its way.
type loading struct {
	progress Progress
	cancel   context.CancelFunc
}

// Load opens a model in the background and then makes it the one that serves (see
// Use). Status shows how far it has come. Until then, and when it fails, the model
// that served before goes on serving; a failure is in Status().Error. A later Load
// cancels one in progress. The load ends with ctx, so ctx should not be that of a
// request.
func (s *Service) Load(ctx context.Context, open func(ctx context.Context, progress func(done, total int64)) (Model, error), name string) {
	ctx, cancel := context.WithCancel(ctx)
	l := &loading{progress: Progress{Name: name}, cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		cancel()
		return
	}
	if s.loading != nil {
		s.loading.cancel()
	}
	s.loading, s.loadError = l, ""
	s.live.Add(1)
	go func() {
		defer s.live.Done()
		defer cancel()
		s.load(ctx, l, open)
	}()
}

// load is the goroutine of one load.
func (s *Service) load(ctx context.Context, l *loading, open func(context.Context, func(done, total int64)) (Model, error)) {
	progress := func(done, total int64) {
		s.mu.Lock()
		l.progress.Done, l.progress.Total = done, total
		s.mu.Unlock()
	}
	var m Model
	err := guard("load "+l.progress.Name, func() (err error) {
		m, err = open(ctx, progress)
		return err
	})
	if err == nil && m == nil {
		err = errors.New("appliance: load: no model came of it")
	}
	s.mu.Lock()
	current := s.loading == l && !s.closed
	if current && err != nil {
		s.loading, s.loadError = nil, err.Error()
	}
	s.mu.Unlock()
	switch {
	case err != nil && !current:
		// Cancelled by a later load or by Close, which know it.
	case err != nil:
		s.cfg.Logger.Error("model did not load", "model", l.progress.Name, "error", err)
	case !current:
		m.Close()
	default:
		s.Use(m)
		s.mu.Lock()
		if s.loading == l {
			s.loading = nil
		}
		s.mu.Unlock()
	}
}
