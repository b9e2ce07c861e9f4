package devicetest

import (
	"fmt"
	"sync"
	"time"

	"ganglion/gpu/device"
)

// Limited is a device with the limits of a profile. What is asked of it beyond them is
// refused with an error that wraps device.ErrLimit, and remembered: code that recovers
// from the error has violated the limit all the same.
type Limited struct {
	device.Device
	profile Profile
	limits  device.Limits
	caps    device.Caps

	mu         sync.Mutex
	weights    map[device.Buffer]bool
	predicted  map[device.Program]time.Duration
	violations []Violation
	slow       []Submission
}

// Violation is something that was asked for beyond a limit.
type Violation struct {
	Limit string // "binding bytes"
	Where string // `kernel "matvec_q4_k"`, "buffer"
	Asked int64
	Has   int64 // what the profile has
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %d %s, the limit is %d", v.Where, v.Asked, v.Limit, v.Has)
}

// Submission is one that took, or is predicted to take, longer than the budget.
type Submission struct {
	Commands  int
	Predicted time.Duration // the least that the profile's memory allows, 0 = unknown
	Measured  time.Duration // on the device under the profile
}

// Wrap puts a device under the profile; closing the one closes the other.
func (p Profile) Wrap(d device.Device) *Limited {
	return &Limited{
		Device: d, profile: p, limits: p.within(d.Limits()), caps: p.has(d.Caps()),
		weights: map[device.Buffer]bool{}, predicted: map[device.Program]time.Duration{},
	}
}

// Limits are those of the profile, or of the device where it has less.
func (l *Limited) Limits() device.Limits { return l.limits }

// Caps are what profile and device share.
func (l *Limited) Caps() device.Caps { return l.caps }

// Violations lists what was asked for beyond the limits so far.
func (l *Limited) Violations() []Violation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Violation(nil), l.violations...)
}

// Slow lists the submissions above the budget so far. They are no violations: whether a
// measurement on another device, or a prediction, means something is the test's to say.
func (l *Limited) Slow() []Submission {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Submission(nil), l.slow...)
}

// most refuses what is above a limit.
func (l *Limited) most(where, limit string, asked, has int64) error {
	if asked <= has {
		return nil
	}
	return l.refuse(Violation{limit, where, asked, has})
}

func (l *Limited) refuse(v Violation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, v)
	return fmt.Errorf("devicetest: profile %s: %v: %w", l.profile.Name, v, device.ErrLimit)
}

// NewBuffer makes a buffer of at most the profile's size.
func (l *Limited) NewBuffer(size int64, u device.Usage) (device.Buffer, error) {
	if err := l.most("buffer", "buffer bytes", size, l.limits.BufferBytes); err != nil {
		return nil, err
	}
	b, err := l.Device.NewBuffer(size, u)
	if err == nil && u == device.Weights {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.weights[b] = true
	}
	return b, err
}

// NewKernel compiles a shader that fits the profile.
func (l *Limited) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	if s != nil {
		if err := l.fits(s, constants); err != nil {
			return nil, err
		}
	}
	return l.Device.NewKernel(s, constants)
}

func (l *Limited) fits(s *device.Shader, constants []uint32) error {
	where := fmt.Sprintf("kernel %q", s.Name)
	for _, b := range s.Bindings {
		if b.Texels && l.limits.Texels == 0 {
			return l.refuse(Violation{"texel fetches", where, 1, 0})
		}
	}
	for _, c := range capabilities(s.SPIRV) {
		if !l.allows(c) {
			return l.refuse(Violation{fmt.Sprintf("SPIR-V capability %d", c), where, 1, 0})
		}
	}
	invocations := 1
	if values := s.Values(constants); len(values) > 0 {
		invocations = int(values[0])
	}
	for _, x := range []struct {
		limit      string
		asked, has int
	}{
		{"storage buffers", len(s.Bindings), l.limits.StorageBuffers},
		{"parameter bytes", s.ParamBytes, l.limits.ParamBytes},
		{"shared bytes", s.SharedBytes(constants), l.limits.SharedBytes},
		{"invocations", invocations, l.limits.Invocations},
	} {
		if err := l.most(where, x.limit, int64(x.asked), int64(x.has)); err != nil {
			return err
		}
	}
	return nil
}

// NewProgram records commands that fit the profile.
func (l *Limited) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	o.Timed = o.Timed && l.caps.Timer
	var bytes int64
	for _, c := range commands {
		n, err := l.command(c)
		if err != nil {
			return nil, err
		}
		bytes += n
	}
	p, err := l.Device.NewProgram(commands, o)
	if err == nil && l.profile.Bandwidth > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.predicted[p] = time.Duration(float64(bytes) / float64(l.profile.Bandwidth) * float64(time.Second))
	}
	return p, err
}

// command checks a command and gives the bytes of weights that it reads.
func (l *Limited) command(c device.Command) (weights int64, err error) {
	where := "command"
	var bindings []device.Binding
	if c.Kernel != nil {
		where, bindings = fmt.Sprintf("kernel %q", c.Kernel.Shader().Name), c.Kernel.Shader().Bindings
	}
	for i, r := range c.Bindings {
		if r.Buffer == nil {
			continue // the device's to refuse
		}
		at := fmt.Sprintf("%s: binding %d", where, i)
		size, most := r.Size, l.limits.BindingBytes
		if size == 0 {
			size = r.Buffer.Size() - r.Offset
		}
		if i < len(bindings) && bindings[i].Texels {
			most = l.limits.Texels * 16
		}
		if err := l.most(at, "binding bytes", size, most); err != nil {
			return 0, err
		}
		if odd := r.Offset % l.limits.OffsetAlign; odd != 0 {
			return 0, l.refuse(Violation{"bytes of offset alignment", at, r.Offset, l.limits.OffsetAlign})
		}
		if l.isWeights(r.Buffer) {
			weights += size
		}
	}
	if err := l.most(where, "parameter bytes", int64(len(c.Params)), int64(l.limits.ParamBytes)); err != nil {
		return 0, err
	}
	for axis, n := range c.Groups {
		if err := l.most(where, fmt.Sprintf("workgroups on axis %d", axis), int64(n), l.limits.Groups[axis]); err != nil {
			return 0, err
		}
	}
	return weights, nil
}

func (l *Limited) isWeights(b device.Buffer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weights[b]
}

// Submit measures a submission by its fence.
func (l *Limited) Submit(p device.Program) (device.Fence, error) {
	f, err := l.Device.Submit(p)
	if err != nil {
		return nil, err
	}
	return &measured{Fence: f, l: l, p: p, began: time.Now()}, nil
}

// measured is a fence that knows when it was submitted.
type measured struct {
	device.Fence
	l     *Limited
	p     device.Program
	began time.Time
	ended bool
}

// Wait notes how long the submission took, the first time that it has ended.
func (m *measured) Wait(timeout time.Duration) error {
	err := m.Fence.Wait(timeout)
	if err == nil && !m.ended {
		m.ended = true
		m.l.ran(m.p, time.Since(m.began))
	}
	return err
}

func (l *Limited) ran(p device.Program, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Submission{p.Commands(), l.predicted[p], took}
	if max(s.Predicted, s.Measured) > l.profile.Budget {
		l.slow = append(l.slow, s)
	}
}
