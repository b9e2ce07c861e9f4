package pipeline_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
)

// banner takes back the last n tokens when token bad came first, and bans what stood
// first among them from then on.
func banner(bad int32, n int) *pipelinetest.Plugin {
	p := &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "banner", Slot: abi.SlotText}}
	p.Manifest.View.Holdback = n
	p.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	p.New = func() map[abi.Hook]pipelinetest.Code {
		var banned []int32
		return map[abi.Hook]pipelinetest.Code{
			abi.HookPlan: func(f *pipelinetest.Frame) (a abi.Action) {
				for i, id := range banned {
					a = f.Edit(i, id, abi.OpBan, 0)
				}
				return a
			},
			abi.HookAccept: func(f *pipelinetest.Frame) abi.Action {
				if int32(f.U(abi.OffToken)) != bad || len(banned) > 0 {
					return 0
				}
				h := f.Tokens()
				banned = append(banned, h[len(h)-n])
				return f.Rewind(n)
			},
		}
	}
	return p
}

// counter counts what it accepts, in a state that snapshots hold.
func counter(draft abi.Draft) (p *pipelinetest.Plugin, sum func() int) {
	state := make([]byte, 8)
	get := func() int { return int(binary.LittleEndian.Uint64(state)) }
	put := func(v int) { binary.LittleEndian.PutUint64(state, uint64(v)) }
	p = &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "counter", Slot: abi.SlotBias, Draft: draft}}
	p.Manifest.View.History = abi.History{Kind: abi.HistoryAll}
	var said []int32
	p.New = func() map[abi.Hook]pipelinetest.Code {
		put(0)
		said = said[:0]
		return map[abi.Hook]pipelinetest.Code{
			abi.HookAccept: func(f *pipelinetest.Frame) abi.Action {
				for i := range f.U(abi.OffInN) {
					id := int32(f.U(f.L.In + 4*i))
					put(get() + int(id))
					said = append(said, id)
				}
				return 0
			},
			abi.HookRollback: func(f *pipelinetest.Frame) abi.Action {
				for range f.U(abi.OffBacktrack) {
					put(get() - int(said[len(said)-1]))
					said = said[:len(said)-1]
				}
				return 0
			},
		}
	}
	p.Save = func() []byte { return state }
	p.Load = func(b []byte) { copy(state, b) }
	return p, get
}

// TestRewind: tokens are taken back, the plugin that asked remembers, the others are put
// back by each of the ways there are.
func TestRewind(t *testing.T) {
	want := append(until(11, 13), until(15, 23)...) // 14 is banned, two before 16
	for _, draft := range []abi.Draft{abi.DraftSnapshot, abi.DraftSelf, abi.DraftRefuse} {
		c, sum := counter(draft)
		b := banner(16, 3)
		x, got := run(t, []*pipelinetest.Plugin{c, b})
		total := 0
		for _, id := range got {
			total += int(id)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", draft, got, want)
		}
		if sum() != total {
			t.Errorf("%s: the other plugin counted %d, want %d of %v", draft, sum(), total, got)
		}
		opened := map[abi.Draft]int{abi.DraftSnapshot: 1, abi.DraftSelf: 1}[draft]
		if opened > 0 && c.Opened() != opened {
			t.Errorf("%s: it was opened %d times", draft, c.Opened())
		} else if opened == 0 && c.Opened() < 2 {
			t.Errorf("%s: it was not opened again", draft)
		}
		if r := x.Reports(); r[1].Rewinds < 1 || b.Opened() != 1 {
			t.Errorf("%s: reports %+v", draft, r)
		}
	}
}

// TestRewindAtEveryLength: wherever the text turns back, what the others hold is what
// they would have heard.
func TestRewindAtEveryLength(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for bad := int32(11); bad < 22; bad++ {
			c, sum := counter(abi.DraftSnapshot)
			b := banner(bad, n)
			if int(bad)-10 < n {
				continue // there is less text than that
			}
			_, got := run(t, []*pipelinetest.Plugin{c, b})
			total := 0
			for _, id := range got {
				total += int(id)
			}
			if sum() != total {
				t.Errorf("%d tokens behind %d: counted %d, want %d of %v", n, bad, sum(), total, got)
			}
		}
	}
}

func TestLivelock(t *testing.T) {
	stubborn := func() *pipelinetest.Plugin { // bans nothing
		p := in(abi.SlotText, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffToken) == 15 {
				return f.Rewind(2)
			}
			return 0
		})
		p.Manifest.View.Holdback = 2
		return p
	}
	x, err := begin(t, one(stubborn()))
	if err != nil {
		t.Fatal(err)
	}
	if e := x.fails(t); e.Code != "livelock" {
		t.Errorf("%v", e)
	}
	if r := x.Reports()[0]; r.Rewinds == 0 || r.Rewinds > 32 {
		t.Errorf("%d rewinds", r.Rewinds)
	}
	p := stubborn()
	p.OnError = pipeline.Skip
	if x, got := run(t, one(p)); !slices.Equal(got, until(11, 22)) || len(x.warned) != 1 {
		t.Errorf("skipped: %v, %v", got, x.warned)
	}
}

// TestLivelockInAll: a text that turns back in many places, in each of them less often than
// in one, ends when four times its length was sampled.
func TestLivelockInAll(t *testing.T) {
	const most = 12 // tokens of the harness's texts
	for rounds, want := range map[int]string{2: "", 5: "livelock"} {
		back := map[int]int{} // by place
		p := in(abi.SlotText, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
			if at := f.U(abi.OffStep); back[at] < rounds {
				back[at]++
				return f.Rewind(1)
			}
			return 0
		})
		p.Manifest.View.Holdback = 1
		x, err := begin(t, one(p))
		if err != nil {
			t.Fatal(err)
		}
		if want == "" { // the partner: as many turns in one place, and fewer in all
			if got := x.finish(t); !slices.Equal(got, until(11, 22)) || x.Reports()[0].Rewinds != rounds*most {
				t.Errorf("%v after %d rewinds, want %d", got, x.Reports()[0].Rewinds, rounds*most)
			}
			continue
		}
		if e := x.fails(t); e.Code != want || !strings.Contains(e.Message, "tokens were made") {
			t.Errorf("%v", e)
		}
		if n := x.Reports()[0].Rewinds; n > 4*most || n < 3*most {
			t.Errorf("%d rewinds before a text of %d tokens ended", n, most)
		}
	}
}

func TestRewindNoFurtherThanHeldBack(t *testing.T) {
	for n, want := range map[int]string{0: "action", 3: "action"} {
		p := in(abi.SlotText, abi.HookAccept, func(f *pipelinetest.Frame) abi.Action {
			if f.U(abi.OffToken) == 15 {
				return f.Rewind(n)
			}
			return 0
		})
		p.Manifest.View.Holdback = 2
		x, err := begin(t, one(p))
		if err != nil {
			t.Fatal(err)
		}
		if e := x.fails(t); e.Code != want {
			t.Errorf("%d tokens: %v", n, e)
		}
	}
}
