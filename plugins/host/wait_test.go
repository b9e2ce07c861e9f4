package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

// soon ends before anything that these tests hold is given back.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// fill takes all seats, as guests do that open.
func (s seats) fill() (empty func()) {
	for range cap(s) {
		s <- struct{}{}
	}
	return func() {
		for range cap(s) {
			s.leave()
		}
	}
}

// TestOpenWaitsForASeat: and no longer than its request lasts.
func TestOpenWaitsForASeat(t *testing.T) {
	r := newRuntime(t, Options{})
	p := load(t, r, testGuest(ordinary))
	leave := r.seats.fill()
	o := opening(0)
	o.Spent = func(int64, time.Duration) { t.Error("it opened") }
	if _, err := p.Open(soon(t), o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("all seats taken: %v", err)
	}
	if len(p.idle) != 1 || p.refs != 1 {
		t.Errorf("%d guests are unused, %d references held", len(p.idle), p.refs)
	}
	// The partner: whoever has the time waits until there is one.
	opened := make(chan error)
	go func() {
		i, err := p.Open(t.Context(), opening(0))
		if err == nil {
			err = i.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("without a seat: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	leave()
	if err := <-opened; err != nil {
		t.Error(err)
	}
	// A request that has ended takes no seat, even where there are some.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if _, err := p.Open(gone, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("a request that has ended: %v", err)
		}
	}
}

// TestLoadWaitsForItsTurn: and no longer than whoever brought the file.
func TestLoadWaitsForItsTurn(t *testing.T) {
	r := newRuntime(t, Options{})
	leave := r.compiling.fill()
	if _, err := r.Load(soon(t), testGuest(ordinary)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another one compiles: %v", err)
	}
	leave()
	load(t, r, testGuest(ordinary)) // the partner

	// Tests that a file carries open instances.
	tested := wasm.AppendCustom(testGuest(ordinary), abi.SectionTests, []byte(`{"name":"a","steps":[{"hook":"plan","want":{}}]}`+"\n"))
	leave = r.seats.fill()
	if _, err := r.Load(soon(t), tested); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("golden tests without a seat: %v", err)
	}
	leave()
	load(t, r, tested)
}

// clumsyVocab panics when it is asked for the end of a text.
type clumsyVocab struct {
	letterVocab
	key string
}

func (clumsyVocab) EOG(int32) bool { panic("no such tensor") }
func (v clumsyVocab) Key() string  { return v.key }

// TestServicesThatPanicTakeNoSeat: nor do they take the guest.
func TestServicesThatPanicTakeNoSeat(t *testing.T) {
	r := newRuntime(t, Options{})
	p := load(t, r, testGuest(strings.Replace(ordinary, `"n":256`, `"n":256,"gather":["eog"]`, 1)))
	o := opening(0)
	for n := range cap(r.seats) + 1 {
		o.Services.Vocab = clumsyVocab{key: fmt.Sprint(n)} // what is known of a key is not asked again
		if _, err := p.Open(t.Context(), o); codeOf(err) != CodePanic || !strings.Contains(err.Error(), "no such tensor") {
			t.Fatalf("%v", err)
		}
	}
	if len(r.seats) != 0 || p.refs != 1 || len(p.idle) != 0 {
		t.Errorf("%d seats are taken, %d references held, %d guests kept", len(r.seats), p.refs, len(p.idle))
	}
	open(t, p, opening(0)) // the partner: with services that work it opens
}
