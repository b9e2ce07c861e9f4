package appliance

import "ganglion/gpu/ops"

// Stoppable is a model whose next Run can be ended early (engine.Engine.StopWith).
type Stoppable interface {
	StopWith(*ops.Stop)
}

// forsaken is the batch that runs, where it may be ended early: one that reads prompts, which
// takes long where a picture is read at once or the machine is slow. It is of use as long as
// one of its sequences is.
type forsaken struct {
	batch []*sequence
	stop  *ops.Stop // nil: no such batch
}

// stoppable lets the batch that runs next end once nobody waits for any of it.
func (s *scheduler) stoppable() {
	m, ok := s.model.(Stoppable)
	if !ok {
		return
	}
	stop := new(ops.Stop)
	s.mu.Lock()
	s.forsaken.batch, s.forsaken.stop = append(s.forsaken.batch[:0], s.batch...), stop
	s.mu.Unlock()
	m.StopWith(stop)
	s.stopForsaken() // who was cancelled since the batch was formed
}

// ran notes that no batch runs.
func (s *scheduler) ran() {
	s.mu.Lock()
	s.forsaken.stop = nil
	clear(s.forsaken.batch)
	s.mu.Unlock()
}

// stopForsaken ends the batch that runs where all its sequences were cancelled.
func (s *scheduler) stopForsaken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forsaken.stop == nil {
		return
	}
	for _, q := range s.forsaken.batch {
		if !s.abandon && !q.c.cancelled.Load() {
			return
		}
	}
	s.forsaken.stop.Set()
}
