package engine_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/opstest"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/tokenizer"
)

const recorded = "../encoder/testdata"

func openRecorded(t *testing.T, family string, c engine.Config) *engine.Engine {
	t.Helper()
	c.Path, c.KV, c.Context = filepath.Join(recorded, "models", family+"-text.gguf"), ops.KVF32, 1024
	if c.Backend == nil {
		c.Backend = ref.New()
	}
	e, err := engine.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// TestRowsOfTokensAreTokens: the row of a token's embedding is the token.
func TestRowsOfTokensAreTokens(t *testing.T) {
	e := openRecorded(t, "ultravox", engine.Config{})
	f, err := gguf.Open(filepath.Join(recorded, "models", "ultravox-text.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, ok := f.Tensor("token_embd.weight")
	if !ok {
		t.Fatal("no table of embeddings")
	}
	data, err := f.Data(tensor)
	if err != nil {
		t.Fatal(err)
	}
	table := floatsFrom(data)
	width := e.Info().EmbedWidth
	var tokens []int32
	for i := range int32(70) {
		tokens = append(tokens, (i*37+3)%250)
	}
	row := func(slot int, id int32, embed bool) engine.Row {
		r := engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}}
		if embed {
			r.Token, r.Embed = -2-id, table[int(id)*width:(int(id)+1)*width]
		}
		return r
	}
	var want []float32
	for turn := range 3 { // tokens; rows; rows that are in place already but for the last ones
		var ids []int32
		for _, id := range tokens {
			if turn > 0 {
				id = -2 - id
			}
			ids = append(ids, id)
		}
		slot, cached, ok := e.Acquire(ids, 0)
		if !ok || (cached > 0) != (turn == 2) {
			t.Fatalf("turn %d: %d rows in place, %v", turn, cached, ok)
		}
		var rows []engine.Row
		for _, id := range tokens[cached:] {
			rows = append(rows, row(slot, id, turn > 0))
		}
		for i := range rows[:len(rows)-1] {
			rows[i].Want = false
		}
		heads, err := e.Run(rows)
		if err != nil {
			t.Fatal(err)
		}
		got := heads[0].Row
		if turn == 0 {
			want = slices.Clone(got)
		} else if !slices.Equal(got, want) {
			t.Errorf("turn %d: other logits", turn)
		}
		e.Release(slot)
	}
	slot, _, _ := e.Acquire([]int32{1}, 0)
	for _, bad := range []engine.Row{{Slot: slot, Token: -1}, {Slot: slot, Token: 3, Embed: make([]float32, width)}, {Slot: slot, Token: -5, Embed: make([]float32, width-1)}} {
		if _, err := e.Run([]engine.Row{bad}); err == nil {
			t.Errorf("%+v ran", bad)
		}
	}
}

// TestRowsRunAgainElsewhere: where a device fails, rows of sound run again on the next.
func TestRowsRunAgainElsewhere(t *testing.T) {
	for at := 1; at < 24; at += 5 {
		c := engine.Config{Path: filepath.Join(recorded, "models", "ultravox-text.gguf"), KV: ops.KVF32, Context: 1024, MaxRows: 64}
		e := recovered(t, c, &opstest.Faulty{Backend: ref.New(), Kind: opstest.CallRun, At: at, Err: ops.ErrDeviceLost}, ref.New())
		width := e.Info().EmbedWidth
		rows := make([]engine.Row, 150)
		for i := range rows {
			rows[i].Token = int32(i)
			if i > 20 && i < 140 {
				rows[i].Token, rows[i].Embed = -int32(i), make([]float32, width)
				for k := range rows[i].Embed {
					rows[i].Embed[k] = float32(math.Sin(float64(i * (k + 3))))
				}
			}
		}
		again := 0
		e.Rebuild(func(slot, pos int, token int32) engine.Row {
			again++
			if pos < len(rows) {
				return engine.Row{Slot: slot, Token: token, Embed: rows[pos].Embed}
			}
			return engine.Row{Slot: slot, Token: token}
		})
		plain := openRecorded(t, "ultravox", engine.Config{MaxRows: 64})
		rows[len(rows)-1].Want = true
		got, want := greedily(t, e, slices.Clone(rows), 20), greedily(t, plain, slices.Clone(rows), 20)
		if !slices.Equal(got, want) || e.Info().Moves != 1 || (again == 0) != (at == 1) {
			t.Errorf("fails at run %d: %v with %d rows asked for and %d moves, want %v", at, got, again, e.Info().Moves, want)
		}
	}
}

// TestOthersRunAgain: a sequence whose rows nobody can give again ends, and the others go on.
func TestOthersRunAgain(t *testing.T) {
	c := engine.Config{Path: filepath.Join(recorded, "models", "ultravox-text.gguf"), KV: ops.KVF32, Context: 1024, Slots: 2}
	e := recovered(t, c, &opstest.Faulty{Backend: ref.New(), Kind: opstest.CallRun, At: 3, Err: ops.ErrDeviceLost}, ref.New())
	width := e.Info().EmbedWidth
	e.Rebuild(func(slot, _ int, token int32) engine.Row {
		r := engine.Row{Slot: slot, Token: token}
		if token < 0 {
			r.Embed = make([]float32, width-1)
		}
		return r
	})
	run := func(slot int, token int32) error {
		r := engine.Row{Slot: slot, Token: token, Want: true}
		if token < 0 {
			r.Embed = make([]float32, width)
		}
		_, err := e.Run([]engine.Row{r})
		return err
	}
	heard, _, _ := e.Acquire([]int32{-2, 5}, 0)
	text, _, _ := e.Acquire([]int32{7, 8, 9}, 0)
	for i, err := range []error{run(heard, -2), run(text, 7), run(text, 8), run(text, 9)} {
		if err != nil {
			t.Errorf("row %d: %v", i, err)
		}
	}
	if e.Info().Moves != 1 {
		t.Errorf("%d moves", e.Info().Moves)
	}
	if run(heard, 5) == nil {
		t.Error("the sequence that was lost goes on")
	}
	e.Release(heard)
	if heard, cached, ok := e.Acquire([]int32{-2, 5}, 0); !ok || cached != 0 || run(heard, -2) != nil {
		t.Errorf("its slot is of no use: %d in place, %v", cached, ok)
	}
}

// TestRecordedEmbeddings runs the recorded prompts with the recorded output of the
// encoder: what the text model makes of it must be what the reference made.
func TestRecordedEmbeddings(t *testing.T) {
	for _, tt := range []struct{ family, begin, end string }{
		{"ultravox", "", ""}, {"qwen2audio", "<|audio_bos|>", "<|audio_eos|>"},
	} {
		var recording struct {
			Cases []struct {
				Name   string
				Prompt int       `json:"prompt_tokens"`
				Parts  [][]int32 `json:"text_part_tokens"`
				Tokens []int32
				Embeds struct{ File string } `json:"embeddings"`
				Media  []string
			}
		}
		b, err := os.ReadFile(filepath.Join(recorded, "expected", tt.family+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &recording); err != nil {
			t.Fatal(err)
		}
		for _, c := range recording.Cases {
			if len(c.Media) != 1 {
				continue // of several only the last one's output is recorded
			}
			t.Run(tt.family+"/"+c.Name, func(t *testing.T) {
				e := openRecorded(t, tt.family, engine.Config{MaxRows: 64})
				v, special := e.Tokenizer(), tokenizer.EncodeOptions{ParseSpecial: true}
				var rows []engine.Row
				add := func(ids []int32) {
					for _, id := range ids {
						rows = append(rows, engine.Row{Token: id})
					}
				}
				add(v.Encode("", tokenizer.EncodeOptions{AddSpecial: true}))
				add(c.Parts[0])
				add(v.Encode(tt.begin, special))
				width := e.Info().EmbedWidth
				embeds := floatsOf(t, filepath.Join(recorded, "expected", c.Embeds.File))
				for i := range len(embeds) / width {
					rows = append(rows, engine.Row{Token: int32(-2 - i), Embed: embeds[i*width : (i+1)*width]})
				}
				add(v.Encode(tt.end, special))
				add(c.Parts[1])
				if len(rows) != c.Prompt {
					t.Fatalf("%d rows, want %d", len(rows), c.Prompt)
				}
				rows[len(rows)-1].Want = true
				if got := greedily(t, e, rows, len(c.Tokens)); !slices.Equal(got, c.Tokens) {
					t.Errorf("%v, want %v", got, c.Tokens)
				}
			})
		}
	}
}

// greedily runs a prompt in batches and then the best tokens.
func greedily(t *testing.T, e *engine.Engine, rows []engine.Row, n int) (out []int32) {
	t.Helper()
	ids := make([]int32, len(rows))
	for i, r := range rows {
		ids[i] = r.Token
	}
	slot, cached, ok := e.Acquire(ids, 0)
	if !ok {
		t.Fatal("no slot")
	}
	defer e.Release(slot)
	rows = rows[cached:]
	for len(out) < n {
		batch := rows[:min(len(rows), e.Info().MaxRows)]
		for i := range batch {
			batch[i].Slot = slot
		}
		heads, err := e.Run(batch)
		if err != nil {
			t.Fatal(err)
		}
		if rows = rows[len(batch):]; len(rows) == 0 {
			out = append(out, heads[0].Best)
			rows = []engine.Row{{Slot: slot, Token: heads[0].Best, Want: true}}
		}
	}
	return out
}

func floatsOf(t *testing.T, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return floatsFrom(b)
}

func floatsFrom(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}
