package film

import (
	"context"
	"fmt"
	"iter"
	"time"

	"ganglion/appliance/media/picture"
	"ganglion/gpu/pixel"
)

// Frame is one picture of a film.
type Frame struct {
	At    time.Duration // by the plan
	Image pixel.Image   // the receiver's own
}

// Native decodes the frames of a plan where no engine is needed (Info.Native); data is the
// file, nil for a list. The walk ends with the first error; without one it has exactly plan.Count steps.
func Native(ctx context.Context, data []byte, i Info, plan Plan) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		picks := plan.pick(i.starts)
		w, h := plan.size(i)
		emit := func(n int, m pixel.Image) bool {
			if m.W == i.W && m.H == i.H && (w != i.W || h != i.H) {
				m = pixel.Resize(m, w, h, pixel.Bicubic)
			}
			return yield(Frame{At: plan.At(n), Image: m}, nil)
		}
		fail := func(err error) { yield(Frame{}, fmt.Errorf("film: %w", err)) }
		if i.Kind == Moving {
			next := 0
			n := 0
			for f, err := range picture.Frames(ctx, data, picture.Options{}) {
				if err != nil {
					fail(err)
					return
				}
				for ; next < len(picks) && picks[next] == n; next++ {
					if !emit(next, f.Image()) {
						return
					}
				}
				if n++; next == len(picks) {
					return
				}
			}
			fail(damaged("it has %d frames, its headers say %d", n, i.Frames))
			return
		}
		for n, p := range picks {
			m, err := picture.Decode(ctx, i.bodies[p], picture.Options{AsStored: i.Kind != List})
			if err == nil && (m.W != i.W || m.H != i.H) && (m.W != i.H || m.H != i.W) {
				err = damaged("frame %d has %d×%d pixels, the first %d×%d", p, m.W, m.H, i.W, i.H)
			}
			if err != nil {
				fail(err)
				return
			}
			if !emit(n, picture.Turn(m, i.turn)) {
				return
			}
		}
	}
}
