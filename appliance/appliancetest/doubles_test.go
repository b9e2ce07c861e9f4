package appliancetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/tokenizer"
)

// feed acquires a slot for a prompt and runs what is not cached.
func feed(t *testing.T, m *Scripted, prompt string) (slot int, h engine.Head) {
	t.Helper()
	ids := m.vocab.Encode(prompt, tokenizer.EncodeOptions{})
	slot, cached, ok := m.Acquire(ids, 0)
	if !ok {
		t.Fatal("no slot")
	}
	var rows []engine.Row
	for _, id := range ids[cached:] {
		rows = append(rows, engine.Row{Slot: slot, Token: id})
	}
	rows[len(rows)-1].Want = true
	heads, err := m.Run(rows)
	if err != nil {
		t.Fatal(err)
	}
	return slot, heads[0]
}

func TestScriptedSaysItsScript(t *testing.T) {
	m := NewScripted(Script{Pieces: []string{"a", "b", "a"}}, Options{})
	slot, h := feed(t, m, "prompt")
	got := ""
	for h.Best != EOS {
		got += string(m.vocab.AppendPiece(nil, h.Best, false))
		heads, err := m.Run([]engine.Row{{Slot: slot, Token: h.Best, Want: true, Read: ops.Want{Kind: ops.WantTop, K: 3}}})
		if err != nil {
			t.Fatal(err)
		}
		if h = heads[0]; h.IDs[0] != h.Best || len(h.Logits) != 3 || h.LogSumExp < h.Max {
			t.Fatalf("head %+v", h)
		}
	}
	if got != "aba" {
		t.Errorf("said %q, want %q", got, "aba")
	}
}

// TestHashedNoticesEveryMistake holds that what the metamorphic tests look for does
// change the logits.
func TestHashedNoticesEveryMistake(t *testing.T) {
	head := func(prompts ...string) (h engine.Head) {
		m := NewHashed(Options{Slots: 1})
		for _, p := range prompts {
			var slot int
			slot, h = feed(t, m, p)
			m.Release(slot)
		}
		return h
	}
	right := head("the prompt")
	if again := head("other", "the prompt"); again.Max != right.Max || again.LogSumExp != right.LogSumExp {
		t.Error("the same sequence gives other logits after another prompt")
	}
	for _, wrong := range []string{"the promp", "the promptt", "eht prompt", "xhe prompt"} {
		if h := head(wrong); h.LogSumExp == right.LogSumExp {
			t.Errorf("%q gives the logits of the right prompt", wrong)
		}
	}
}

func TestRulesOfRunAreHeld(t *testing.T) {
	row := func(slot int, token int32) engine.Row { return engine.Row{Slot: slot, Token: token} }
	for name, rows := range map[string][]engine.Row{
		"no rows":            {},
		"too many":           slices.Repeat([]engine.Row{row(0, 1)}, 9),
		"not acquired":       {row(2, 1)},
		"apart":              {row(0, 1), row(1, 1), row(0, 1)},
		"token out of range": {row(0, 9999)},
		"context full":       slices.Repeat([]engine.Row{row(0, 1)}, 8),
	} {
		m := NewHashed(Options{MaxRows: 8, Context: 7})
		m.Acquire([]int32{1, 2}, 0)
		m.Acquire([]int32{1, 2}, 0)
		if _, err := m.Run(rows); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a slot may be released twice")
		}
	}()
	NewHashed(Options{}).Release(0)
}

func TestRecorderNoticesBrokenRules(t *testing.T) {
	ctx := context.Background()
	open := &appliance.Record{ID: "a", Outcome: appliance.OutcomeOpen}
	for name, do := range map[string]func(r *Recorder){
		"begun twice":     func(r *Recorder) { r.Begin(ctx, open); r.Begin(ctx, open) },
		"ended twice":     func(r *Recorder) { r.Begin(ctx, open); r.End(open); r.End(open) },
		"never begun":     func(r *Recorder) { r.End(open) },
		"begun with more": func(r *Recorder) { r.Begin(ctx, &appliance.Record{ID: "b", Outcome: appliance.OutcomeStop}) },
	} {
		var r Recorder
		do(&r)
		if len(r.Faults()) != 1 {
			t.Errorf("%s: faults %q, want one", name, r.Faults())
		}
	}
	var r Recorder
	r.Begin(ctx, open)
	r.End(open)
	if len(r.Faults()) != 0 || len(r.Begun()) != 1 || len(r.Ended()) != 1 {
		t.Errorf("faults %q of a right order", r.Faults())
	}
}

func TestOptions(t *testing.T) {
	fault := errors.New("fault")
	gate := make(chan struct{})
	m := NewHashed(Options{Gate: gate, Before: func(run int, _ []engine.Row) error {
		if run == 2 {
			return fault
		}
		return nil
	}})
	slot, _, _ := m.Acquire([]int32{1, 2, 3}, 0)
	for run := 1; run <= 2; run++ {
		got := make(chan error)
		go func() {
			_, err := m.Run([]engine.Row{{Slot: slot, Token: 1}})
			got <- err
		}()
		gate <- struct{}{}
		if err := <-got; (run == 2) != errors.Is(err, fault) {
			t.Errorf("run %d: %v", run, err)
		}
	}
	if m.Runs() != 2 || m.Closed() || m.Close() != nil || !m.Closed() {
		t.Errorf("%d runs, closed %v", m.Runs(), m.Closed())
	}
	c := NewClock(time.Unix(5, 0))
	c.Advance(time.Second)
	if !c.Now().Equal(time.Unix(6, 0)) {
		t.Errorf("clock shows %v", c.Now())
	}
}
