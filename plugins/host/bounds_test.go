package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

// TestOpeningSharesItsFuel: what one call of opening burnt, the next does not have.
func TestOpeningSharesItsFuel(t *testing.T) {
	i := open(t, load(t, newRuntime(t, Options{}), testGuest(ordinary)), opening(0))
	if all := i.p.Fuel(abi.HookOpen); i.opening >= all || i.opening < all/2 {
		t.Fatalf("%d of %d are left", i.opening, all)
	}
	if _, err := i.alloc(16, 16); err != nil {
		t.Fatal(err)
	}
	i.opening = 1
	if _, err := i.alloc(16, 16); err == nil || err.Code != CodeFuel {
		t.Errorf("with nothing left: %v", err)
	}
}

// TestOpeningLeavesAProcessor: no more plugins open at a time than there are seats.
func TestOpeningLeavesAProcessor(t *testing.T) {
	r := newRuntime(t, Options{})
	p := load(t, r, testGuest(ordinary))
	for range cap(r.seats) {
		r.seats <- struct{}{}
	}
	opened := make(chan error)
	go func() {
		i, err := p.Open(t.Context(), opening(0))
		if i != nil {
			err = errors.Join(err, i.Close())
		}
		opened <- err
	}()
	select {
	case <-opened:
		t.Error("it opened without a seat")
	case <-time.After(50 * time.Millisecond):
	}
	for range cap(r.seats) {
		<-r.seats
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestGuestsInThePoolHaveNoStacks: a stack that grew stays as it is as long as its handle.
func TestGuestsInThePoolHaveNoStacks(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	i := open(t, p, opening(0))
	if _, _, err := i.Call(abi.HookPlan); err != nil {
		t.Fatal(err)
	}
	g, alloc := i.g, i.g.alloc
	if g.hooks[abi.HookPlan] == nil {
		t.Fatal("no handle was made")
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if len(p.idle) != 1 || p.idle[0] != g || g.hooks[abi.HookPlan] != nil || g.alloc == alloc {
		t.Error("handles are kept")
	}
}

// TestUnusedGuestsGo: after a time, or where memory is short.
func TestUnusedGuestsGo(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	a, b := open(t, p, opening(0)), open(t, p, opening(0))
	_, _ = a.Close(), b.Close()
	if len(p.idle) != 2 || p.reaper == nil {
		t.Fatalf("%d are idle", len(p.idle))
	}
	p.idle[0].since = time.Now().Add(-2 * idleTime)
	if p.drop(time.Now().Add(-idleTime)); len(p.idle) != 1 || p.reaper == nil {
		t.Errorf("%d are idle", len(p.idle))
	}
	if p.drop(time.Time{}); len(p.idle) != 0 || p.reaper != nil {
		t.Errorf("%d are idle", len(p.idle))
	}
}

// TestMemoryOfAllGuestsIsBounded.
func TestMemoryOfAllGuestsIsBounded(t *testing.T) {
	r := newRuntime(t, Options{Memory: 4 << 20})
	p, other := load(t, r, testGuest(ordinary)), load(t, r, testGuest(ordinary+`,"title":"other"`))
	var all []*Instance
	var err error
	for range 1000 {
		var i *Instance
		if i, err = p.Open(t.Context(), opening(0)); err != nil {
			break
		}
		all = append(all, i)
	}
	if codeOf(err) != CodeMemory || !strings.Contains(err.Error(), "plugins hold") {
		t.Errorf("after %d instances: %v", len(all), err)
	}
	if used := r.memory.used.Load(); used > 4<<20 || len(all) == 0 || used < 3<<20 {
		t.Errorf("%d bytes are used", used)
	}
	for _, i := range all {
		_ = i.Close()
	}
	i, err := other.Open(t.Context(), opening(0)) // unused guests give way
	if err != nil {
		t.Fatal(err)
	}
	_ = i.Close()
	p.drop(time.Time{})
	if other.drop(time.Time{}); r.memory.used.Load() != 0 {
		t.Errorf("%d bytes are used by nobody", r.memory.used.Load())
	}
}

// TestMuchCodeIsNotCompiledHere: without a child there are no limits on a compiler.
func TestMuchCodeIsNotCompiledHere(t *testing.T) {
	b := minimalBuilder(0)
	body := make([]byte, 250<<10)
	for i := range body {
		body[i] = byte(wasm.OpNop)
	}
	body[len(body)-1] = byte(wasm.OpEnd)
	for range 17 {
		b.FuncRaw(b.Type(nil, nil), append([]byte{0}, body...))
	}
	_, err := newRuntime(t, Options{Interpreter: true}).Load(context.Background(), withManifest(b.Bytes(), ""))
	if err == nil || !strings.Contains(err.Error(), "no child") {
		t.Errorf("%v", err)
	}
	if _, err := New(Options{Cache: t.TempDir()}); err == nil {
		t.Error("a cache without a child is taken")
	}
}

// TestTransientFailures: what the machine is at fault for is told apart.
func TestTransientFailures(t *testing.T) {
	needsCompiler(t)
	for _, tt := range []struct {
		mode      string
		time      time.Duration
		transient bool
	}{{"hang", 50 * time.Millisecond, true}, {"memory", 0, false}} {
		r := newRuntime(t, Options{Compile: inChild(tt.mode), Cache: t.TempDir(), CompileTime: tt.time})
		_, err := r.Load(context.Background(), testGuest(ordinary))
		if err == nil || errors.Is(err, ErrTransient) != tt.transient {
			t.Errorf("%s: %v", tt.mode, err)
		}
	}
	if _, err := newRuntime(t, Options{}).Load(context.Background(), guestWasm); err == nil || errors.Is(err, ErrTransient) {
		t.Errorf("no plugin: %v", err)
	}
}
