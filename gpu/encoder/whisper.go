package encoder

import (
	"context"
	"fmt"

	"ganglion/gpu/mel"
	"ganglion/gpu/ops"
)

// whisper is Whisper's encoder with the projectors of Ultravox, Qwen2-Audio and Voxtral.
// Every piece is 30 s of sound, silence added.
//
// A row of the tower is one step of its second convolution, which takes two frames at a
// time: it goes in with the frames 2t−1 … 2t+2, of which two overlapping views are the
// windows of the first convolution at 2t and 2t+1; what the second one needs at 2t−1 is
// the neighbour's.
type whisper struct {
	family string
	bins   int
	stack  int // steps that become one row
}

const whisperSteps = mel.WhisperFrames / 2

func newWhisper(k *keys, family string) *whisper {
	t := &whisper{family: family, bins: k.number("num_mel_bins", -1, maxBins), stack: 2}
	switch family {
	case "ultravox":
		t.stack = k.number("projector.stack_factor", -1, 64)
	case "voxtral":
		t.stack = k.number("projector.stack_factor", 4, 64)
	}
	return t
}

func (t *whisper) maxRows() int { return whisperSteps }

// tokens of a piece: what does not fill a stack is dropped.
func (t *whisper) tokens() int { return whisperSteps / t.stack }

func (t *whisper) plan(g *graph) (*ops.Plan, error) {
	g.act = ops.GELUErf // whatever the flags say
	n := g.width
	in := g.input(4 * t.bins)
	frames := g.Buffer("frames", 3*n) // 2t−1, 2t, 2t+1
	first, bias := g.conv1d("a.conv1d.1", t.bins), g.matrix("a.conv1d.1.bias", n, 1)
	for i := range 2 {
		g.Add(&ops.MatMul{W: first, Bias: bias, In: in.Cols(i*t.bins, 3*t.bins), Out: frames.Cols((1+i)*n, n)})
	}
	g.activate(g.act, frames.Cols(n, 2*n))
	before := g.List(ops.List{Name: "step before", Rows: ops.PerRow, Per: 1, Units: 1})
	g.Add(&ops.Gather{List: before, Unit: n, Terms: 1, In: frames.Cols(2*n, n), Out: frames.Cols(0, n)})
	x := g.activate(g.act, g.MatMul("conv2", g.conv1d("a.conv1d.2", n), g.matrix("a.conv1d.2.bias", n, 1), frames))
	x = g.vit(g.positions("a.position_embd.weight", x, whisperSteps), layers{})
	list := g.List(ops.List{Name: "stack", Rows: ops.PerOut, Per: t.stack, Units: 1})
	g.PerOut(true)
	if t.family == "qwen2a" {
		x = g.norm("a.post_ln", g.gather("means", list, n, 2, n, x))
		return g.done(g.linear("mm.a.fc", x, g.out))
	}
	g.PerOut(false)
	x = g.merge(list, t.stack, g.norm("a.post_ln", x))
	if t.family == "voxtral" {
		return g.done(g.linear("mm.a.mlp.2", g.activate(ops.GELUErf, g.linear("mm.a.mlp.1", x, 0)), g.out))
	}
	x = g.RMSNorm("norm_pre", g.matrix("mm.a.norm_pre.weight", x.Width, 1), 1e-6, 0, x)
	h := g.linear("mm.a.mlp.1", x, 0)
	x = g.GLU("swiglu", ops.SiLU, h.Cols(h.Width/2, h.Width/2), h.Cols(0, h.Width/2))
	x = g.RMSNorm("norm_mid", g.matrix("mm.a.norm_mid.weight", x.Width, 1), 1e-6, 0, x)
	return g.done(g.linear("mm.a.mlp.2", x, g.out))
}

// conv1d is a kernel [out, in, 3] as a matrix over three frames: [out, 3, in].
func (g *graph) conv1d(name string, in int) *ops.Weight {
	v := g.floats(name+".weight", g.width*in*3)
	out := make([]float32, len(v))
	for o := range g.width {
		for c := range in {
			for k := range 3 {
				out[(o*3+k)*in+c] = v[(o*in+c)*3+k]
			}
		}
	}
	return g.derived(name+".weight (by frame)", 3*in, out)
}

func (t *whisper) layout(samples int) (Layout, error) {
	var l Layout
	pieces := mel.WhisperPieces(samples)
	if pieces == 0 {
		return l, fmt.Errorf("encoder: a sound of %d samples gives no frame", samples)
	}
	for range pieces {
		p := Part{N: t.tokens()}
		switch t.family {
		case "qwen2a":
			l.framed("<|audio_bos|>", p, "<|audio_eos|>")
		case "voxtral":
			l.framed("[BEGIN_AUDIO]", p, "")
		default:
			l.framed("", p, "")
		}
	}
	return l, nil
}

func (t *whisper) jobs(ctx context.Context, samples []float32) ([]*job, error) {
	spectra, err := mel.Whisper(ctx, samples, t.bins)
	if err != nil {
		return nil, err
	}
	var jobs []*job
	for _, s := range spectra {
		jobs = append(jobs, t.job(s.Rows, s.Frames))
	}
	return jobs, nil
}

// job is the run on one piece: rows are [frames, bins].
func (t *whisper) job(rows []float32, frames int) *job {
	j := &job{rows: whisperSteps, outs: t.tokens(), embeds: make([]float32, whisperSteps*4*t.bins)}
	before := make([]int32, whisperSteps)
	for i := range whisperSteps {
		before[i] = int32(i) - 1
		for k := range 4 {
			if f := 2*i - 1 + k; f >= 0 && f < frames {
				copy(j.embeds[(4*i+k)*t.bins:], rows[f*t.bins:(f+1)*t.bins])
			}
		}
	}
	stack := make([]int32, j.outs*t.stack)
	for i := range stack {
		stack[i] = int32(i)
	}
	j.lists = [][]int32{before, stack}
	return j
}
