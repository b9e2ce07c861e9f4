package encoder_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/gpu/encoder"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/pixel"
)

// try opens a file and tells what is wrong with it.
func try(t *testing.T, path string) error {
	t.Helper()
	b := ref.New()
	defer b.Close()
	e, err := encoder.Open(context.Background(), encoder.Config{Path: path, Backend: b})
	if err == nil {
		e.Close()
	}
	return err
}

func TestPairing(t *testing.T) {
	b := ref.New()
	defer b.Close()
	e := open(t, b, ops.Exact, "qwen3vl-mmproj.gguf")
	if err := e.Pair(192); err != nil { // 64 and two slices
		t.Error(err)
	}
	if i := e.Info(); i.Width != 192 || i.Slices != 2 || i.Picture != "qwen3vl_merger" || i.Sound != "" {
		t.Errorf("info %+v", i)
	}
	if m := e.Memory(); m.KV <= 0 {
		t.Errorf("memory %+v", m)
	}
	err := e.Pair(64)
	if err == nil || !strings.Contains(err.Error(), "192") || !strings.Contains(err.Error(), "64") {
		t.Errorf("a wrong pair gave %v", err)
	}
	if _, err := e.Sound(16000); !errors.Is(err, encoder.ErrUnsupported) {
		t.Errorf("sound for a tower of pictures gave %v", err)
	}
	if _, err := e.EncodeSound(context.Background(), make([]float32, 16000)); !errors.Is(err, encoder.ErrUnsupported) {
		t.Errorf("sound for a tower of pictures gave %v", err)
	}
	for wish, most := range map[int]int{0: 4096, 64: 64} {
		l, err := e.Picture(encoder.Size{W: 16384, H: 1}, encoder.PictureOptions{MaxTokens: wish})
		if err != nil || l.Parts[1].N > most {
			t.Errorf("a picture of one line takes %+v, at most are %d; %v", l, most, err)
		}
	}
	if _, err := e.EncodePicture(context.Background(), pixel.Image{W: 8, H: 8}, encoder.PictureOptions{}); err == nil {
		t.Error("a picture without pixels was taken")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.EncodePicture(ctx, noise(64, 64), encoder.PictureOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request gave %v", err)
	}
	e.Close()
	if _, err := e.EncodePicture(context.Background(), noise(64, 64), encoder.PictureOptions{}); !errors.Is(err, ops.ErrClosed) {
		t.Errorf("a closed encoder gave %v", err)
	}
}

func TestMaxTokens(t *testing.T) {
	b := ref.New()
	defer b.Close()
	e := open(t, b, ops.Exact, "qwen2vl-mmproj.gguf")
	for _, most := range []int{8, 64, 1000} {
		l, err := e.Picture(encoder.Size{W: 4000, H: 3000}, encoder.PictureOptions{MaxTokens: most})
		if err != nil || l.Parts[1].N > most || l.Parts[1].N < most/3 {
			t.Errorf("at most %d tokens gave %+v, error %v", most, l, err)
		}
	}
}

// Tiles are left out where they would take too many tokens, in the layout and in what is
// encoded.
func TestTilesAreLeftOut(t *testing.T) {
	b := ref.New()
	defer b.Close()
	e := open(t, b, ops.Exact, "smolvlm-mmproj.gguf")
	m := noise(128, 128)
	for most, pieces := range map[int]int{0: 5, 80: 5, 79: 1} {
		o := encoder.PictureOptions{MaxTokens: most}
		l, err := e.Picture(encoder.Size{W: m.W, H: m.H}, o)
		p, failed := e.EncodePicture(context.Background(), m, o)
		if n := l.Tokens(func(string) int { return 0 }); err != nil || failed != nil || len(p) != pieces || n != 16*pieces {
			t.Errorf("at most %d tokens: %d pieces, a layout of %d rows, errors %v and %v, want %d pieces", most, len(p), n, err, failed, pieces)
		}
	}
}

// Files that lie about sizes are refused before anything is allocated for them.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     any
		want      string
	}{
		{"architecture", "general.architecture", "llama", "clip"},
		{"family", "clip.projector_type", "resampler9", "resampler9"},
		{"no tower", "clip.has_vision_encoder", false, "neither"},
		{"layers", "clip.vision.block_count", uint32(1 << 30), "block_count"},
		{"heads", "clip.vision.attention.head_count", uint32(5), "heads"},
		{"patch", "clip.vision.patch_size", uint32(0), "patch_size"},
		{"side", "clip.vision.image_size", uint32(1 << 20), "image_size"},
		{"both functions", "clip.use_silu", true, "use_silu"},
		{"colours", "clip.vision.image_std", []float32{1, 1}, "image_std"},
		{"grey", "clip.vision.image_std", []float32{1, 0, 1}, "image_std"},
		{"width", "clip.vision.embedding_length", uint32(32), "v."},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newTinySeer("mlp", 2, 16)
			found := false
			for i := range m.model.KV {
				if m.model.KV[i].Key == c.key {
					m.model.KV[i].Value, found = c.value, true
				}
			}
			if !found {
				m.model.KV = append(m.model.KV, gguftest.KV{Key: c.key, Value: c.value})
			}
			m.add("v.patch_embd.weight", tinyPatch, tinyPatch, 3, tinyWidth)
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := gguftest.Write(path, m.model); err != nil {
				t.Fatal(err)
			}
			err := try(t, path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %q", err, c.want)
			}
		})
	}
}

// So are those of towers for sound.
func TestRefusalsOfSound(t *testing.T) {
	for _, c := range []struct {
		name, family, key string
		value             any
		want              string
	}{
		{"none", "ultravox", "", nil, "a."}, // the partner: all keys are taken, the tensors are missing
		{"bins", "ultravox", "num_mel_bins", uint32(0), "num_mel_bins"},
		{"many bins", "ultravox", "num_mel_bins", uint32(257), "num_mel_bins"},
		{"stack", "ultravox", "projector.stack_factor", uint32(0), "stack_factor"},
		{"large stack", "voxtral", "projector.stack_factor", uint32(1 << 20), "stack_factor"},
		{"layers", "qwen2a", "block_count", uint32(1 << 30), "block_count"},
		{"heads", "qwen2a", "attention.head_count", uint32(5), "heads"},
		{"no width", "gemma4a", "embedding_length", uint32(0), "embedding_length"},
		{"bins of another", "gemma4a", "num_mel_bins", uint32(1 << 30), "num_mel_bins"},
		{"no tower", "ultravox", "clip.has_audio_encoder", false, "neither"},
		{"family", "ultravox", "clip.projector_type", "ear9", "ear9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newTiny(c.family, "clip.audio.", 1, gguftest.KV{Key: "clip.has_audio_encoder", Value: true},
				gguftest.KV{Key: "clip.audio.num_mel_bins", Value: uint32(8)}, gguftest.KV{Key: "clip.audio.projector.stack_factor", Value: uint32(4)})
			key, found := c.key, c.key == ""
			if !strings.HasPrefix(key, "clip.") {
				key = "clip.audio." + key
			}
			for i := range m.model.KV {
				if m.model.KV[i].Key == key {
					m.model.KV[i].Value, found = c.value, true
				}
			}
			if !found {
				t.Fatalf("no key %s", key)
			}
			m.add("a.conv1d.1.weight", 3, 8, tinyWidth)
			path := filepath.Join(t.TempDir(), "m.gguf")
			if err := gguftest.Write(path, m.model); err != nil {
				t.Fatal(err)
			}
			if err := try(t, path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %q", err, c.want)
			}
		})
	}
}

// A recorded file opens, and cut anywhere it is an error and no crash.
func TestCutFiles(t *testing.T) {
	whole, err := os.ReadFile("testdata/models/gemma3-mmproj.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		path := filepath.Join(t.TempDir(), "cut.gguf")
		if err := os.WriteFile(path, whole[:len(whole)*i/20], 0o600); err != nil {
			t.Fatal(err)
		}
		if try(t, path) == nil {
			t.Errorf("%d of 20 parts of a file were taken", i)
		}
	}
	if err := try(t, "testdata/models/gemma3-mmproj.gguf"); err != nil {
		t.Error(err)
	}
	if err := try(t, "testdata/models/gemma3-text.gguf"); err == nil {
		t.Error("a text model was taken for an encoder")
	}
}
