package host

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"testing"

	"ganglion/plugins/abi"
)

// A request leaves nothing behind: 1,000 requests write canaries wherever they can, and
// each is followed by one that looks for them in the same guest, whose memory is as that of
// a guest that nobody had before.
func TestPoolLeaksNothing(t *testing.T) {
	fresh := open(t, load(t, newRuntime(t, Options{Idle: -1}), testGuest(ordinary)), opening(20))
	untouched, _ := fresh.g.memory.Read(0, fresh.g.memory.Size())
	p := load(t, newRuntime(t, Options{Idle: 1}), testGuest(ordinary))
	canary := []byte{0xC5, 0xC5, 0xC5, 0xC5, 0xC5, 0xC5}
	look := func(g *guest) (clean bool) {
		t.Helper()
		i, err := p.Open(t.Context(), opening(20))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = i.Close() }()
		if i.g != g {
			t.Fatal("it is another guest: the pool was not asked")
		}
		now, _ := g.memory.Read(0, g.memory.Size())
		same := bytes.Equal(now, untouched)
		_, _, err = i.Call(abi.HookPlan)
		return err == nil && same
	}
	var g *guest
	for n := range 1000 {
		i, err := p.Open(t.Context(), opening(19))
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 && i.g != g {
			t.Fatalf("request %d has a guest of its own", n)
		}
		g = i.g
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			t.Fatal(err)
		}
		if now, _ := g.memory.Read(0, g.memory.Size()); bytes.Count(now, canary) < 1000 {
			t.Fatalf("request %d wrote %d canaries", n, bytes.Count(now, canary))
		}
		g.memory.Write(1024, canary) // over its constants, which it needed until now
		_ = i.Close()
		if !look(g) {
			t.Fatalf("request %d left something", n)
		}
	}
	// The partner: what is left in a guest of the pool is seen.
	g.memory.Write(g.memory.Size()-8, canary)
	if look(g) {
		t.Error("a canary in the pool is not found")
	}
}

// The scan of the guest finds a canary where there is one.
func TestCanariesAreFound(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	i := open(t, p, opening(20))
	i.g.memory.WriteUint32Le(2048, 0xC5C5C5C5)
	if _, _, err := i.Call(abi.HookPlan); codeOf(err) != CodeError {
		t.Errorf("a canary is not found: %v", err)
	}
}

func TestPoolDropsGrownMemory(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	for range 3 {
		i := open(t, p, opening(28))
		pages := i.g.memory.Size()
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			t.Fatal(err)
		}
		if i.g.memory.Size() != pages+memoryPage {
			t.Fatal("it did not grow")
		}
		_ = i.Close()
		if len(p.idle) > 1 {
			t.Fatal("a grown instance is in the pool")
		}
		for _, g := range p.idle {
			if g.memory.Size() != p.image.pages*memoryPage {
				t.Error("a grown instance is in the pool")
			}
		}
	}
}

func TestSnapshot(t *testing.T) {
	p := load(t, newRuntime(t, Options{}), testGuest(ordinary))
	i := open(t, p, opening(30)) // edit_n is the number of calls: a counter in memory
	call := func(want uint32) {
		t.Helper()
		if _, _, err := i.Call(abi.HookPlan); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(i.Frame()[abi.OffEditN:]); got != want {
			t.Fatalf("call %d, want %d", got, want)
		}
	}
	call(1)
	call(2)
	state, err := i.Snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	call(3)
	call(4)
	if err := i.Restore(state); err != nil {
		t.Fatal(err)
	}
	call(3)
	i.g.memory.Grow(1)
	call(4)
	if err := i.Restore(state); err != nil {
		t.Fatal(err)
	}
	if got, want := i.g.memory.Size(), uint32(len(state))/memoryPage*memoryPage; got != want {
		t.Errorf("%d bytes of memory after a restore, want %d", got, want)
	}
	call(3)
	for _, bad := range [][]byte{nil, state[:20], state[:len(state)-1], append([]byte("XXXX"), state[4:]...)} {
		if i.Restore(bad) == nil {
			t.Errorf("%d bytes of no state are taken", len(bad))
		}
	}
	call(4)
}
