package appliance

import (
	"fmt"
	"time"

	"ganglion/gpu/engine"
	"ganglion/plugins/sampling"
)

// pluggedJob is work for a sequence's goroutine.
type pluggedJob uint8

const (
	planFirst  pluggedJob = iota // plan the first step
	takeHeads                    // choose tokens from heads, then plan
	endPlugged                   // the sequence is over
)

// work is the goroutine of a sequence with plugins, from its slot to its end.
func (s *scheduler) work(q *sequence) {
	defer s.workers.Done()
	g := q.plug
	scratch := s.scratches.Get().(*sampling.Scratch)
	defer s.scratches.Put(scratch)
	g.scratch = scratch
	for job := range g.jobs {
		switch job {
		case takeHeads:
			g.used = q.readPlugged(g.heads, s.vocab, s.cfg.Now, scratch)
			over := q.over()
			g.watched.take(g)
			g.done <- struct{}{}
			s.signal()
			if !over { // else the scheduler's next job is the end
				g.plan()
			}
			g.watched.show(g)
		case planFirst:
			g.plan()
		case endPlugged:
			s.leave(q, true)
			s.signal()
			return
		}
	}
}

// plan plans the next step; a failure is told at its token. It is no guard with a
// function, for that would allocate at each token.
func (g *plugged) plan() {
	defer func() {
		if p := recover(); p != nil {
			g.fault = fmt.Errorf("appliance: plan: panic: %v", p)
		}
	}()
	g.fault = g.pipe.Plan()
}

// startWork gives a sequence that has a slot its goroutine.
func (s *scheduler) startWork(q *sequence) {
	s.workers.Add(1)
	q.plug.began = true
	q.plug.jobs <- planFirst
	go s.work(q)
}

// hand gives a sequence's goroutine the heads of a step. They are copied, for they are
// valid until the next step alone.
func (g *plugged) hand(heads []engine.Head) {
	for len(g.heads) < len(heads) {
		g.heads = append(g.heads, engine.Head{})
	}
	g.heads = g.heads[:len(heads)]
	for i := range heads {
		to, from := &g.heads[i], &heads[i]
		ids, logits, row := to.IDs, to.Logits, to.Row
		*to = *from
		to.IDs, to.Logits = append(ids[:0], from.IDs...), append(logits[:0], from.Logits...)
		to.Row = nil
		if from.Row != nil {
			to.Row = append(row[:0], from.Row...)
		}
	}
	g.at = true
	g.jobs <- takeHeads
}

// await waits for the sequences with plugins of a step, all together no longer than the
// wait that is configured.
func (s *scheduler) await() {
	waiting := 0
	for _, q := range s.batch {
		if q.plug != nil && q.plug.at {
			waiting++
		}
	}
	if waiting == 0 {
		return
	}
	if s.timer == nil {
		s.timer = time.NewTimer(s.cfg.PluginWait)
	} else {
		s.timer.Reset(s.cfg.PluginWait)
	}
	defer s.timer.Stop()
	over := false
	for _, q := range s.batch {
		g := q.plug
		if g == nil || !g.at {
			continue
		}
		if !over {
			select {
			case <-g.done:
				s.settle(q)
				continue
			case <-s.timer.C:
				over = true
			}
		}
		g.late = true
		s.reap(q)
	}
}

// reap takes a late sequence back if it is done.
func (s *scheduler) reap(q *sequence) {
	select {
	case <-q.plug.done:
		q.plug.late = false
		s.settle(q)
	default:
	}
}

// settle brings a sequence's slot to where its text is.
func (s *scheduler) settle(q *sequence) {
	q.plug.at = false
	if q.over() {
		return
	}
	if rows := q.fed - (len(q.tokens) - 1); rows > 0 {
		if err := s.takeBack(q, rows); err != nil {
			q.err = err
			return
		}
	}
	if err := s.settleAuxiliary(q); err != nil {
		q.err = err
	}
}
