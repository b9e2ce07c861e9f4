package appliance_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline/pipelinetest"
)

// TestSlowPluginDelaysItsOwnSequenceAlone: while a guest runs for long, other texts go on.
func TestSlowPluginDelaysItsOwnSequenceAlone(t *testing.T) {
	block, inside := make(chan struct{}), make(chan struct{})
	for _, hook := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookAccept, abi.HookText} {
		block, inside = make(chan struct{}), make(chan struct{})
		p := coded("slow", abi.SlotText, hook, func(f *frame) abi.Action {
			if f.U(abi.OffStep) == 5 {
				close(inside)
				<-block
			}
			return 0
		})
		b, _ := with(t, noise(), appliance.Config{}, p)
		slow, err := b.Start(within(t), asking("slow", 20, "slow"))
		if err != nil {
			t.Fatal(err)
		}
		<-inside
		want := b.complete(t, asking("fast", 100)) // would not return if it had to wait
		close(block)
		if _, err := slow.Wait(within(t)); err != nil {
			t.Errorf("%s: %v", hook, err)
		}
		if got := b.complete(t, asking("fast", 100)); got.Text != want.Text {
			t.Errorf("%s: the other text changed", hook)
		}
		if got, alone := slow.Result().Text, b.complete(t, asking("slow", 20)).Text; got != alone {
			t.Errorf("%s: the slow text is %q, want %q", hook, got, alone)
		}
	}
}

// TestSlowPluginCostsOthersNoMoreThanTheWait measures the same: with a guest of 40 ms a
// token beside it, another stream's tokens come within 5 ms.
func TestSlowPluginCostsOthersNoMoreThanTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nap := func() *pipelinetest.Plugin {
			return coded("slow", abi.SlotBias, abi.HookLogits, func(f *frame) abi.Action { time.Sleep(40 * time.Millisecond); return 0 })
		}
		b, _ := with(t, endlessModel(), appliance.Config{}, nap())
		slow, err := b.Start(within(t), asking("slow", 1000, "slow"))
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		if _, err := slow.Next(within(t)); err != nil {
			t.Fatal(err)
		}
		const tokens = 400
		from := time.Now()
		b.complete(t, asking("fast", tokens))
		took := time.Since(from)
		if per := took / tokens; per > 5*time.Millisecond {
			t.Errorf("%v a token beside a slow plugin", per)
		}
		// The partner: a wait that never ends makes the other stream as slow as the guest.
		b, _ = with(t, endlessModel(), appliance.Config{PluginWait: time.Hour}, nap())
		other, err := b.Start(within(t), asking("slow", 1000, "slow"))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.Next(within(t)); err != nil {
			t.Fatal(err)
		}
		from = time.Now()
		b.complete(t, asking("fast", 10))
		if per := time.Since(from) / 10; per < 20*time.Millisecond {
			t.Errorf("%v a token with an endless wait: the test sees nothing", per)
		}
	})
}

func endlessModel() *appliancetest.Scripted {
	return appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"a", "b"}, Endless: true}, appliancetest.Options{})
}

// TestCancelWithPlugins: a request that is cancelled ends, whatever its guests do.
func TestCancelWithPlugins(t *testing.T) {
	var ends atomic.Int32
	p := coded("p", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { time.Sleep(time.Millisecond); return 0 })
	p.Hooks[abi.HookEnd] = func(f *frame) abi.Action { ends.Add(1); return 0 }
	b, _ := with(t, endlessModel(), appliance.Config{}, p)
	var all []*appliance.Completion
	for i := range 12 { // more than there are slots
		c, err := b.Start(within(t), asking("x", 1000, "p"))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 && i < 4 {
			if _, err := c.Next(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, c)
	}
	for _, c := range all {
		c.Close()
	}
	for _, c := range all {
		var e *appliance.Error
		if _, err := c.Wait(within(t)); !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
			t.Errorf("ended with %v", err)
		}
	}
	if n := ends.Load(); n < 2 {
		t.Errorf("%d texts that had begun were ended", n)
	}
}

// TestManyWithPlugins: texts with and without plugins, side by side, are what each is
// alone.
func TestManyWithPlugins(t *testing.T) {
	b, _ := with(t, noise(), appliance.Config{QueueMax: 100}, noE())
	want := map[string]string{}
	for i := range 8 {
		prompt := fmt.Sprint("prompt ", i)
		want[prompt] = b.complete(t, asking(prompt, 60, "no-e")).Text
		want[prompt+"-"] = b.complete(t, asking(prompt+"-", 60)).Text
	}
	running := map[string]*appliance.Completion{}
	for prompt := range want {
		names := []string{"no-e"}
		if strings.HasSuffix(prompt, "-") {
			names = nil
		}
		c, err := b.Start(within(t), asking(prompt, 60, names...))
		if err != nil {
			t.Fatal(err)
		}
		running[prompt] = c
	}
	for prompt, c := range running {
		r, err := c.Wait(within(t))
		if err != nil || r.Text != want[prompt] {
			t.Errorf("%s: %v, or another text than alone", prompt, err)
		}
	}
}

// TestPluginsAndGuesses: guessing ahead changes nothing of a text that plugins make.
func TestPluginsAndGuesses(t *testing.T) {
	random := coded("random", abi.SlotTruncate, abi.HookLogits, func(f *frame) abi.Action {
		f.Put(abi.OffCandN, 1+f.U(abi.OffRandom)%3)
		return abi.Cands
	})
	random.Manifest.Truncates = true
	count := 0
	stateful := coded("stateful", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action {
		return f.Edit(0, int32('a'+count%26), abi.OpAdd, 9)
	})
	stateful.Hooks[abi.HookAccept] = func(f *frame) abi.Action { count++; return 0 }
	texts := map[string]bool{}
	for _, speculate := range []appliance.Speculation{appliance.SpeculateOff, appliance.SpeculateLookup, appliance.SpeculateLookup} {
		count = 0
		b, _ := with(t, noise(), appliance.Config{Speculate: speculate}, random, stateful)
		r := asking("abcabcabcabcabc", 200, "random", "stateful")
		r.Temperature, r.Seed = ptr(1.0), ptr(int64(5))
		texts[b.complete(t, r).Text] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d different texts", len(texts))
	}
}

func TestRefusingDrafts(t *testing.T) {
	p := coded("run", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { return 0 })
	p.Manifest.Draft = abi.DraftRefuse
	b, _ := with(t, endlessModel(), appliance.Config{Speculate: appliance.SpeculateLookup}, p)
	if got := b.complete(t, asking("ababab", 100, "run")); got.DraftedTokens != 0 || len(got.Warnings) != 1 {
		t.Errorf("%d guesses, warnings %q", got.DraftedTokens, got.Warnings)
	}
	if got := b.complete(t, asking("ababab", 100)); got.DraftedTokens == 0 {
		t.Error("without the plugin nothing is guessed either: the test sees nothing")
	}
}
