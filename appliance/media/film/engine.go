package film

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"ganglion/gpu/pixel"
)

// Options configure an Engine.
type Options struct {
	// Command makes the command that runs Child with args in a process of its own, most
	// often this program again. nil: there is no engine.
	Command func(ctx context.Context, args ...string) *exec.Cmd
	// Cache is a folder of the engine's own, where the compiled module is kept (70 MB).
	Cache string
	// Time bounds the decoding of one item by the clock, which also runs while others have
	// the processors; a minute where it is 0.
	Time time.Duration
	// Children bounds how many decode at once, 1 where it is 0. Each takes some 250 MB, and 800 MB at the most.
	Children int
}

// Engine decodes in child processes what Native does not. It is safe for concurrent use.
type Engine struct {
	o     Options
	slots chan struct{}
	warm  sync.WaitGroup
	life  context.Context // of compiling, which outlives the item that asked for it
	stop  context.CancelFunc

	mu       sync.Mutex
	status   Status
	compiled chan struct{} // closed when compiling ends; nil while nobody compiles
}

// State is how far an engine is.
type State string

// The states of an engine. Compiling takes seconds once; later starts find the result.
const (
	Absent    State = "absent" // not in this program
	Idle      State = "idle"   // not asked for yet
	Compiling State = "compiling"
	Ready     State = "ready"
	Failed    State = "failed" // the next item tries again
)

// Status tells how far an engine is.
type Status struct {
	State State
	Since time.Time
	Share float64 // of compiling that is done, as far as can be told; 1 when it is ready
	Err   error   // of Failed
	need  time.Duration
}

// NewEngine makes an engine, which starts nothing before Warm or the first item.
func NewEngine(o Options) *Engine {
	if o.Time == 0 {
		o.Time = time.Minute
	}
	e := &Engine{o: o, slots: make(chan struct{}, max(o.Children, 1)), status: Status{State: Idle, Since: time.Now()}}
	if o.Command == nil {
		e.status.State = Absent
	}
	e.life, e.stop = context.WithCancel(context.Background())
	return e
}

// HasModule tells whether the program has the module of engines.
func HasModule() bool { return module != "" }

// Close ends what Warm started and waits for it. It may be called twice.
func (e *Engine) Close() error {
	e.stop()
	e.warm.Wait()
	return nil
}

// Status tells how far the engine is.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.status
	if s.State == Compiling && s.need > 0 {
		s.Share = min(float64(time.Since(s.Since))/float64(s.need), 0.99)
	}
	return s
}

// set notes a new state. The caller holds mu.
func (e *Engine) set(s Status) {
	s.Since = time.Now()
	e.status = s
}

// Warm compiles in the background.
func (e *Engine) Warm() { e.start() }

// start begins to compile where nobody does; the channel is closed at the end.
func (e *Engine) start() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.compiled != nil || e.status.State == Absent || e.status.State == Ready || e.life.Err() != nil {
		return e.compiled
	}
	done := make(chan struct{})
	e.compiled = done
	e.set(Status{State: Compiling})
	e.warm.Go(func() {
		err := e.compile(e.life)
		e.mu.Lock()
		defer e.mu.Unlock()
		switch {
		case err == nil:
			e.set(Status{State: Ready, Share: 1})
		case errors.Is(err, ErrNoDecoder):
			e.set(Status{State: Absent})
		default:
			e.set(Status{State: Failed, Err: err})
		}
		e.compiled = nil
		close(done)
	})
	return done
}

// Prepare compiles where that is not done and waits for it, which may take longer than an
// item may. Without it items wait by themselves, on their own time. The error is
// ErrNoDecoder, the context's or why compiling failed.
func (e *Engine) Prepare(ctx context.Context) error {
	if done := e.start(); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch s := e.Status(); s.State {
	case Ready:
		return nil
	case Failed:
		return s.Err
	}
	return ErrNoDecoder
}

// command is a child that works in few threads from its first moment on.
func (e *Engine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := e.o.Command(ctx, args...)
	cmd.Env = append(cmd.Environ(), "GOMAXPROCS="+strconv.Itoa(min(runtime.GOMAXPROCS(0), childThreads)))
	return cmd
}

// compileOver is how much longer compiling takes than unpacking: measured on amd64, 7.4
// s after 135 ms.
const compileOver = 55

func (e *Engine) compile(ctx context.Context) error {
	if err := os.MkdirAll(e.o.Cache, 0o700); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	start := time.Now()
	cmd := e.command(limited, e.o.Cache, "compile")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var said tail
	cmd.Stderr, cmd.WaitDelay = &said, time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "unpacked" {
			e.mu.Lock()
			e.status.need = compileOver * time.Since(start)
			e.mu.Unlock()
		}
	}
	return said.judge(ctx, limited, cmd.Wait())
}

// kinds are the containers that ffmpeg may see in a file; playlists and the like, which
// name other files, are none of them.
const kinds = "mov,matroska,avi,aac,ogg,amr,amrnb,amrwb,mp3,flac,wav"

// turnOf marks the contexts of a turn of an engine.
type turnOf struct{ e *Engine }

// Turn waits until fewer than Children items decode and takes a place for one. What is
// decoded under the context that it gives, one after another, waits no more. done ends the
// turn; it may be called twice.
func (e *Engine) Turn(ctx context.Context) (turned context.Context, done func(), err error) {
	if ctx.Value(turnOf{e}) != nil {
		return ctx, func() {}, nil
	}
	select {
	case e.slots <- struct{}{}:
		return context.WithValue(ctx, turnOf{e}, true), sync.OnceFunc(func() { <-e.slots }), nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// run starts ffmpeg on data and gives what it writes to f. Where f stops early it does not
// matter how the child ends.
func (e *Engine) run(ctx context.Context, data []byte, args []string, f func(io.Reader) (stopped bool, err error)) error {
	ctx, done, err := e.Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.Prepare(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, e.o.Time)
	defer cancel()
	args = append([]string{e.o.Cache, "run", "ffmpeg", "-nostdin", "-hide_banner", "-v", "error", "-format_whitelist", kinds}, args...)
	cmd := e.command(limited, args...)
	said := tail{foreign: true}
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(data), &said, time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			return ErrTime // it was over before the child began
		}
		return err
	}
	stopped, err := f(out)
	if stopped {
		cancel() // whatever the child has left to do
		_ = cmd.Wait()
		return err
	}
	_, _ = io.Copy(io.Discard, out)
	if end := said.judge(ctx, limited, cmd.Wait()); end != nil {
		return end // why less came than was asked for
	}
	return err
}

// keyframesFrom is the number of pixels from which on only keyframes are decoded: what
// the module does in ten seconds.
const keyframesFrom = 300_000_000

// Frames decodes the frames of a plan. The walk ends with the first error; without one
// it has exactly plan.Count steps: a film that ends a little earlier than its headers
// say shows its last frame on. Of a long film each frame is the keyframe before it.
func (e *Engine) Frames(ctx context.Context, data []byte, i Info, plan Plan) iter.Seq2[Frame, error] {
	if i.Native() {
		return Native(ctx, data, i, plan)
	}
	return func(yield func(Frame, error) bool) {
		n := 0
		w, h := plan.size(i)
		var last pixel.Image
		emit := func(m pixel.Image) bool {
			last = m
			n++
			return yield(Frame{At: plan.At(n - 1), Image: m}, nil)
		}
		err := e.run(ctx, data, frameArgs(i, plan), func(r io.Reader) (bool, error) {
			for n < plan.Count {
				m := pixel.New(w, h)
				if _, err := io.ReadFull(r, m.Pix); err != nil {
					return false, ErrShort
				}
				if !emit(m) {
					return true, nil
				}
			}
			return true, nil
		})
		stopped := err == nil && n < plan.Count
		if missing := plan.Count - n; errors.Is(err, ErrShort) && n > 0 && missing <= max(plan.Count/8, 1) {
			err = nil
			for ; n < plan.Count && !stopped; stopped = !emit(copyOf(last)) {
			}
		}
		if err != nil {
			yield(Frame{}, fmt.Errorf("film: %w", err))
		}
	}
}

func copyOf(m pixel.Image) pixel.Image { return m.Crop(0, 0, m.W, m.H) }

// frameArgs asks ffmpeg for the frames of a plan as RGB, one after another. The first one is
// that which is seen at the plan's start, however long before it began: ffmpeg gives what
// follows the keyframe before it, and its filter leaves all but the last of that out.
func frameArgs(i Info, plan Plan) []string {
	var args []string
	w, h := plan.size(i)
	filter := fmt.Sprintf("fps=%s:round=near", strconv.FormatFloat(plan.Rate, 'f', 9, 64))
	if plan.Start > 0 {
		args = append(args, "-noaccurate_seek", "-ss", seconds(plan.Start))
		filter += ":start_time=0"
	}
	filter += fmt.Sprintf(",scale=%d:%d", w, h)
	pixels := float64(i.W) * float64(i.H) * float64(min(i.within(plan.Start, plan.End), 30*int(math.Ceil((plan.End-plan.Start).Seconds()))))
	keyframes := pixels > keyframesFrom
	if keyframes {
		args = append(args, "-skip_frame", "nokey")
	}
	if keyframes || plan.Count == 1 {
		// Behind the last keyframe there is nothing, and of a part that is shorter than half a
		// step the other filter would give no frame at all: the last one is seen on.
		filter = "tpad=stop=-1:stop_mode=clone," + filter
	}
	return append(args, "-i", "/"+inputName, "-map", "0:v:0", "-an", "-sn", "-dn", "-vf", filter,
		"-frames:v", strconv.Itoa(plan.Count), "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1")
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }

// appendSamples adds samples of 32 bits up to the capacity.
func appendSamples(samples []float32, b []byte) ([]float32, error) {
	for ; len(b) >= 4 && len(samples) < cap(samples); b = b[4:] {
		x := math.Float32frombits(le.Uint32(b))
		if x-x != 0 { // NaN, ±Inf
			return nil, damaged("sample %d is %g", len(samples), x)
		}
		samples = append(samples, x)
	}
	return samples, nil
}

// Sound decodes the sound track of a film, or a sound file that Go does not decode, to
// mono samples of 16 kHz: as many as its headers say (SoundInfo.Samples). A little less
// in the file, which coders leave, is silence at the end.
func (e *Engine) Sound(ctx context.Context, data []byte, i SoundInfo) ([]float32, error) {
	samples := make([]float32, 0, i.Samples())
	err := e.run(ctx, data, []string{
		"-i", "/" + inputName, "-map", "0:a:0", "-vn", "-sn", "-dn",
		"-af", "aresample=16000:ocl=mono:rematrix_maxval=1", "-f", "f32le", "pipe:1",
	}, func(r io.Reader) (bool, error) {
		b := make([]byte, 64<<10)
		for {
			n, err := io.ReadFull(r, b)
			var wrong error
			if samples, wrong = appendSamples(samples, b[:n]); wrong != nil {
				return true, wrong
			}
			if len(samples) == cap(samples) {
				return true, nil
			}
			if err != nil {
				return false, nil
			}
		}
	})
	if missing := cap(samples) - len(samples); err == nil && missing > max(cap(samples)/20, soundRate/2) {
		err = ErrShort
	}
	if err != nil {
		return nil, fmt.Errorf("film: %w", err)
	}
	return samples[:cap(samples)], nil
}
