package compute

import (
	"errors"
	"time"

	"ganglion/gpu/device"
)

// recording is a program for one bucket of KV length as the device knows it.
type recording struct {
	lowered   *lowering
	main, top cuts
}

// cuts is a list of dispatches, cut into device programs of bounded predicted time that
// are submitted one after another. A dispatch is never cut.
type cuts struct {
	b        *Backend
	list     []dispatch
	programs []device.Program
	time     time.Duration // predicted for all of them when they were cut
	scale    float64       // of the pace then
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
			if err := c.add(commands); err != nil {
				return err
			}
			commands, spent = nil, 0
		}
		commands = append(commands, command)
		spent += t
		c.time += t
	}
	return c.add(commands)
}

// add makes a device program of some commands.
func (c *cuts) add(commands []device.Command) error {
	if len(commands) == 0 {
		return nil
	}
	commands[0].Barrier = true // for what earlier submissions wrote
	p, err := c.b.dev.NewProgram(commands, device.ProgramOptions{})
	if err != nil {
		return err
	}
	c.programs = append(c.programs, p)
	return nil
}

// forget closes the device's programs.
func (c *cuts) forget() error {
	var errs []error
	for _, p := range c.programs {
		errs = append(errs, p.Close())
	}
	c.programs, c.time = nil, 0
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

// submit runs lists one after another, waits for the end and learns from the time that
// they took. All submissions are under way before the first one is waited for.
func (b *Backend) submit(s *Stats, lists ...*cuts) error {
	var fences []device.Fence
	deadline, assumed := b.opts.Deadline, 0.0
	start := time.Now()
	var failed error
	for _, c := range lists {
		for _, p := range c.programs {
			f, err := b.dev.Submit(p)
			if err != nil {
				failed = err
				break
			}
			fences = append(fences, f)
			s.Dispatches += p.Commands()
			s.Submissions++
		}
		deadline += c.time
		assumed += assumedTime(c.list)
	}
	for _, f := range fences {
		if err := f.Wait(max(deadline-time.Since(start), time.Millisecond)); err != nil {
			return errors.Join(failed, err)
		}
	}
	if failed == nil {
		b.pace.measured(assumed, time.Since(start))
	}
	return failed
}
