package appliance_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
)

// crowd are requests that run at the same time: prompts of many lengths that share
// beginnings, greedy and drawn.
func crowd() []*appliance.Request {
	words := strings.Repeat("one two three ", 5)
	return []*appliance.Request{
		greedy(words, 32), sampled(words+"x", 7, 50), greedy(words[:30], 36), sampled("y"+words[:40], 3, 29), greedy(words, 5), sampled(words[:12], 8, 40),
	}
}

// together completes requests at the same time on a device that goes over to another
// one, and returns the answers and what the log says.
func together(t *testing.T, device ops.Backend, other ops.Backend) (answers []*appliance.Result, log *appliancetest.Recorder) {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{
		Path: "../gpu/engine/testdata/arch/gemma3-dense.gguf", Numerics: ops.Exact, Slots: 3, Context: 192, MaxRows: 32, Backend: device,
		Recover: func(error, int) (ops.Backend, error) { return other, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	log = &appliancetest.Recorder{}
	s, err := appliance.NewService(appliance.Config{Rand: appliancetest.Seed, Recorder: log, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Use(appliance.FromEngine(e))
	ctx := within(t)
	requests := crowd()
	answers = make([]*appliance.Result, len(requests))
	var wg sync.WaitGroup
	for i, r := range requests {
		c, err := s.Start(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer c.Close()
			if answers[i], err = c.Wait(ctx); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	return answers, log
}

// Whichever run a device is lost in, every request goes on with the text that it would
// have had.
func TestDeviceLostChangesNoText(t *testing.T) {
	b, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	count := &opstest.Faulty{Backend: b}
	want, _ := together(t, count, b)
	if n := count.Calls(opstest.CallRun); n < 55 {
		t.Fatalf("%d runs in all: too few to lose a device in", n)
	}
	moved := 0
	for at := 1; at <= 50; at++ {
		device := &opstest.Faulty{Backend: b, Kind: opstest.CallRun, At: at, Err: ops.ErrDeviceLost}
		got, log := together(t, device, b)
		for i := range want {
			if got[i] == nil || !same(got[i], want[i]) {
				t.Fatalf("lost in run %d: request %d: %v, want %q", at, i, got[i], want[i].Text)
			}
		}
		if device.Calls(opstest.CallRun) < at {
			continue // the requests were over by then
		}
		moved++
		said := 0
		for _, r := range log.Ended() {
			if strings.Contains(r.Moved, "device lost") {
				said++
			}
		}
		if said == 0 {
			t.Errorf("lost in run %d: no row of the log says so", at)
		}
	}
	if moved < 45 {
		t.Errorf("%d devices were lost, want at least 45", moved)
	}
}

// The partner: a device that leaves a run out after the loss is seen.
func TestLostRunChangesText(t *testing.T) {
	b, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	want, _ := together(t, b, b)
	got, _ := together(t, &opstest.Faulty{Backend: b, Kind: opstest.CallRun, At: 8, Err: ops.ErrDeviceLost},
		&opstest.Faulty{Backend: b, Kind: opstest.CallRun, At: 1, Skip: true})
	for i := range want {
		if !same(got[i], want[i]) {
			return
		}
	}
	t.Error(fmt.Sprint("no text tells that the cells of a prompt are missing: ", len(want), " requests"))
}
