package engine_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/archtest"
	"ganglion/gpu/compute"
	"ganglion/gpu/device"
	"ganglion/gpu/device/devicetest"
	"ganglion/gpu/engine"
	"ganglion/gpu/gl"
	"ganglion/gpu/ops"
	"ganglion/gpu/tokenizer"
	"ganglion/gpu/vulkan"
)

// picturesOf says how a family's pieces stand in a prompt.
type picturesOf struct {
	family, begin, end string
	align              int  // pixels of a token where rows turn by line and column, else 0
	ahead              bool // rows see to the end of their picture
}

var pictures = []picturesOf{
	{"gemma3", "<start_of_image>", "<end_of_image>", 0, true},
	{"gemma4", "<|image>", "<image|>", 0, true},
	{"qwen2vl", "<|vision_start|>", "<|vision_end|>", 28, false},
	{"qwen25vl", "<|vision_start|>", "<|vision_end|>", 28, false},
	{"qwen3vl", "<|vision_start|>", "<|vision_end|>", 32, false},
}

// recordedPicture is a recorded prompt of one picture and the reference's answer.
type recordedPicture struct {
	Name   string
	Prompt int       `json:"prompt_tokens"`
	Parts  [][]int32 `json:"text_part_tokens"`
	Tokens []int32
	Embeds struct{ File string } `json:"embeddings"`
	Media  []string
	Steps  []struct{ Top5 [][2]float64 }
}

func (f picturesOf) cases(t *testing.T) []recordedPicture {
	t.Helper()
	var recording struct{ Cases []recordedPicture }
	b, err := os.ReadFile(filepath.Join(recorded, "expected", f.family+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &recording); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(recording.Cases, func(c recordedPicture) bool { return len(c.Media) != 1 || len(c.Name) != 1 })
}

// rows are those of the prompt, with the recorded output of the encoder; turn is the
// position by which the next row turns.
func (f picturesOf) rows(t *testing.T, e *engine.Engine, c recordedPicture) (rows []engine.Row, turn int32) {
	t.Helper()
	grids := map[int][2]int{12: {4, 3}, 35: {5, 7}, 30: {5, 6}} // columns and lines by rows
	v, special := e.Tokenizer(), tokenizer.EncodeOptions{ParseSpecial: true}
	add := func(ids []int32) {
		for _, id := range ids {
			rows = append(rows, f.row(id, turn))
			turn++
		}
	}
	add(v.Encode("", tokenizer.EncodeOptions{AddSpecial: true}))
	add(c.Parts[0])
	add(v.Encode(f.begin, special))
	width := e.Info().EmbedWidth
	embeds := floatsOf(t, filepath.Join(recorded, "expected", c.Embeds.File))
	n, from := len(embeds)/width, len(rows)
	grid := grids[n]
	for i := range n {
		r := engine.Row{Token: int32(-2 - i), Embed: embeds[i*width : (i+1)*width]}
		if f.ahead {
			r.Until = from + n
		}
		if f.align > 0 {
			r.Turned, r.Rotary = true, [ops.Axes]int32{turn, turn + int32(i/grid[0]), turn + int32(i%grid[0])}
		}
		rows = append(rows, r)
	}
	turn += int32(max(grid[0], grid[1]))
	if f.align == 0 {
		turn = int32(len(rows))
	}
	add(v.Encode(f.end, special))
	add(c.Parts[1])
	if len(rows) != c.Prompt {
		t.Fatalf("%d rows, want %d", len(rows), c.Prompt)
	}
	return rows, turn
}

// row is one of text.
func (f picturesOf) row(id, turn int32) engine.Row {
	return engine.Row{Token: id, Turned: f.align > 0, Rotary: [ops.Axes]int32{turn, turn, turn}}
}

// acquire gives rows a slot.
func acquire(t *testing.T, e *engine.Engine, rows []engine.Row) {
	t.Helper()
	ids := make([]int32, len(rows))
	for i, r := range rows {
		ids[i] = r.Token
	}
	slot, _, ok := e.Acquire(ids, 0)
	if !ok {
		t.Fatal("no slot")
	}
	t.Cleanup(func() { e.Release(slot) })
	for i := range rows {
		rows[i].Slot = slot
	}
}

// check runs a recorded prompt: the first step within 0.02 of the reference, and its tokens
// where its choices were clear. It gives the logits of the first step.
func (f picturesOf) check(t *testing.T, e *engine.Engine, c recordedPicture) (first []float32) {
	t.Helper()
	rows, turn := f.rows(t, e, c)
	acquire(t, e, rows)
	var got []int32
	for step := range c.Tokens {
		rows[len(rows)-1].Want, rows[len(rows)-1].Read = true, ops.Want{Kind: ops.WantRow}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		h := heads[0]
		if step == 0 {
			first = slices.Clone(h.Row)
			for _, top := range c.Steps[0].Top5 {
				if d := math.Abs(float64(h.Row[int(top[0])]-h.LogSumExp) - top[1]); d > 0.02 {
					t.Errorf("token %v: log-probability %v away from %v", top[0], d, top[1])
				}
			}
		}
		best := -1 // the reference was told to go on beyond the end of its turn
		for id, x := range h.Row {
			if !e.Tokenizer().IsEOG(tokenizer.TokenID(id)) && (best < 0 || x > h.Row[best]) {
				best = id
			}
		}
		got = append(got, int32(best))
		next := f.row(int32(best), turn)
		next.Slot = rows[0].Slot
		rows = []engine.Row{next}
		turn++
	}
	if !slices.Equal(got, c.Tokens) {
		t.Errorf("%v, want %v", got, c.Tokens)
	}
	return first
}

// firsts are the logits of the first step of each recorded prompt on a backend.
func firsts(t *testing.T, f picturesOf, b ops.Backend) (all [][]float32) {
	t.Helper()
	for _, c := range f.cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			all = append(all, f.check(t, openRecorded(t, f.family, engine.Config{Backend: b, Numerics: ops.Exact}), c))
		})
	}
	return all
}

// TestRecordedPictures runs the recorded prompts of one picture: the reference's answers,
// and in exact mode the same bits on the backend of the processor as on the oracle.
func TestRecordedPictures(t *testing.T) {
	cpu := backends["cpu"](t)
	defer cpu.Close()
	for _, f := range pictures {
		t.Run(f.family, func(t *testing.T) {
			var want, got [][]float32
			t.Run("ref", func(t *testing.T) { want = firsts(t, f, nil) })
			t.Run("cpu", func(t *testing.T) { got = firsts(t, f, cpu) })
			sameFirsts(t, got, want)
		})
	}
}

// TestRecordedPicturesOnGPUs is TestRecordedPictures on Vulkan and OpenGL.
func TestRecordedPicturesOnGPUs(t *testing.T) {
	cpu := backends["cpu"](t)
	defer cpu.Close()
	want := map[string][][]float32{}
	for _, f := range pictures {
		t.Run("cpu/"+f.family, func(t *testing.T) { want[f.family] = firsts(t, f, cpu) })
	}
	for api, open := range map[string]func() (device.Device, error){
		"vulkan": func() (device.Device, error) { return vulkan.Open(vulkan.Options{}) },
		"gl":     func() (device.Device, error) { return gl.Open(gl.Options{}) },
	} {
		t.Run(api, func(t *testing.T) {
			d := devicetest.Open(t, api, open)
			b := compute.New(d, compute.Options{Shared: true, Deadline: 5 * time.Minute})
			defer b.Close()
			for _, f := range pictures {
				t.Run(f.family, func(t *testing.T) { sameFirsts(t, firsts(t, f, b), want[f.family]) })
			}
			// Where dispatches must be short the text around a picture runs row by row.
			short := compute.New(d, compute.Options{Shared: true, Deadline: 5 * time.Minute, Dispatch: 1})
			defer short.Close()
			for _, f := range []picturesOf{pictures[0], pictures[len(pictures)-1]} {
				t.Run(f.family+"/short", func(t *testing.T) { sameFirsts(t, firsts(t, f, short), want[f.family]) })
			}
		})
	}
}

func sameFirsts(t *testing.T, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d prompts, want %d", len(got), len(want))
	}
	for i := range want {
		if !archtest.SameBits(got[i], want[i]) {
			t.Errorf("prompt %d: the logits of the first step have other bits", i)
		}
	}
}
