package compute

import (
	"errors"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// recording is a program for one bucket of KV length as the device knows it.
type recording struct {
	lowered          *lowering
	main, top, stats cuts
}

// forget closes the device's programs.
func (r *recording) forget() error {
	return errors.Join(r.main.forget(), r.top.forget(), r.stats.forget())
}

// cuts is a list of dispatches, cut into device programs of bounded predicted time that
// are submitted one after another. A dispatch is never cut here: see lowering.inTime.
type cuts struct {
	b        *Backend
	list     []dispatch
	programs []device.Program
	times    []time.Duration // predicted for each of them when they were cut
	scale    float64         // of the pace then
	ran      bool            // before: drivers compile kernels when they first run
}

// record makes the device's programs, unless they are there and cut well. All of them
// are there afterwards, or none.
func (c *cuts) record() error {
	if c.programs != nil && c.b.pace.near(c.scale) {
		return nil
	}
	if err := c.forget(); err != nil {
		return err
	}
	c.scale = c.b.pace.scale()
	if err := c.cut(); err != nil {
		return errors.Join(err, c.forget())
	}
	return nil
}

// cut makes programs of the list until all of it is in one.
func (c *cuts) cut() error {
	var commands []device.Command
	spent := time.Duration(0)
	for i := range c.list {
		command, err := c.b.command(&c.list[i])
		if err != nil {
			return err
		}
		t := c.b.pace.predict(&c.list[i])
		if len(commands) > 0 && spent+t > c.b.opts.Slice {
			if err := c.add(commands, spent); err != nil {
				return err
			}
			commands, spent = nil, 0
		}
		commands = append(commands, command)
		spent += t
	}
	return c.add(commands, spent)
}

// add makes a device program of some commands that are to take so long.
func (c *cuts) add(commands []device.Command, t time.Duration) error {
	if len(commands) == 0 {
		return nil
	}
	commands[0].Barrier = true // for what earlier submissions wrote
	p, err := c.b.dev.NewProgram(commands, device.ProgramOptions{})
	if err != nil {
		return err
	}
	c.programs, c.times = append(c.programs, p), append(c.times, t)
	return nil
}

// forget closes the device's programs.
func (c *cuts) forget() error {
	var errs []error
	for _, p := range c.programs {
		errs = append(errs, p.Close())
	}
	c.programs, c.times = nil, nil
	return errors.Join(errs...)
}

// command resolves a dispatch to what the device takes.
func (b *Backend) command(d *dispatch) (device.Command, error) {
	k, err := b.kernel(d.shader, d.constants)
	if err != nil {
		return device.Command{}, err
	}
	c := device.Command{Kernel: k, Params: d.params, Barrier: d.barrier}
	for i, n := range d.groups {
		c.Groups[i] = uint32(n)
	}
	for _, r := range d.bind {
		c.Bindings = append(c.Bindings, device.Range{Buffer: r.mem.buf, Offset: r.offset, Size: r.size})
	}
	return c, nil
}

// inFlight is how many submissions of a run that may be stopped are under way at most: one
// that the device works on and one that it goes on with.
const inFlight = 2

// submit runs lists one after another, waits for the end and learns from the time that
// they took, unless one of them ran for the first time. All submissions are under way
// before the first one is waited for, but for a run that may be stopped.
func (b *Backend) submit(s *Stats, stop *ops.Stop, lists ...*cuts) error {
	assumed, first := 0.0, false
	for _, c := range lists {
		first = first || !c.ran
		assumed += assumedTime(c.list)
	}
	beyond := b.opts.Deadline
	if first {
		beyond += beyond / 4 // what drivers compile when it first runs
	}
	var fences []device.Fence
	var times []time.Duration
	var failed error
	start := b.now()
	for _, c := range lists {
		for i, p := range c.programs {
			if failed == nil && stop != nil && len(fences) == inFlight {
				failed = wait(fences[:1], times[:1], beyond)
				fences, times = fences[1:], times[1:]
			}
			if failed == nil && stop.Stopped() {
				failed = ops.ErrStopped
			}
			if failed != nil {
				break
			}
			f, err := b.dev.Submit(p)
			if err != nil {
				failed = err
				break
			}
			fences, times = append(fences, f), append(times, c.times[i])
			s.Dispatches += p.Commands()
			s.Submissions++
		}
	}
	if !errors.Is(failed, device.ErrTimeout) {
		failed = errors.Join(failed, wait(fences, times, beyond))
	}
	if failed != nil {
		return failed
	}
	for _, c := range lists {
		c.ran = true
	}
	if !first {
		b.pace.measured(assumed, b.now().Sub(start))
	}
	return nil
}

// wait waits for submissions in their order: for all of them, for what is under way uses
// the buffers. Each may take its predicted time, and some more, from the end of the one
// before it on, so that a device that hangs is known for it soon however long the batch
// is. Where one does not end in time none of the later ones will.
func wait(fences []device.Fence, times []time.Duration, beyond time.Duration) error {
	var failed error
	for i, f := range fences {
		err := f.Wait(times[i] + beyond)
		failed = errors.Join(failed, err)
		if errors.Is(err, device.ErrTimeout) {
			break
		}
	}
	return failed
}
