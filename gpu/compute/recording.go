package compute

import (
	"errors"
	"time"

	"ganglion/gpu/device"
)

// recording is a lowered list as the device knows it: cut into programs of bounded
// predicted time, which are submitted one after another.
type recording struct {
	b        *Backend
	lowered  *lowering
	programs []device.Program
	time     time.Duration // predicted for all of them when they were cut
	scale    float64       // of the pace then
}

// record makes the device's programs, unless they are there and cut well.
func (rec *recording) record() error {
	if rec.programs != nil && rec.b.pace.near(rec.scale) {
		return nil
	}
	if err := rec.forget(); err != nil {
		return err
	}
	rec.scale = rec.b.pace.scale()
	var commands []device.Command
	spent := time.Duration(0)
	flush := func() error {
		if len(commands) == 0 {
			return nil
		}
		commands[0].Barrier = true // what earlier submissions wrote
		p, err := rec.b.dev.NewProgram(commands, device.ProgramOptions{})
		if err != nil {
			return err
		}
		rec.programs = append(rec.programs, p)
		commands, spent = nil, 0
		return nil
	}
	for i := range rec.lowered.list {
		d := &rec.lowered.list[i]
		c, err := rec.b.command(d)
		if err != nil {
			return err
		}
		t := rec.b.pace.predict(d)
		if spent+t > rec.b.opts.Slice {
			if err := flush(); err != nil {
				return err
			}
		}
		commands = append(commands, c)
		spent += t
		rec.time += t
	}
	return flush()
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

// run submits the programs and waits for the last one.
func (rec *recording) run(s *Stats) error {
	var fence device.Fence
	start := time.Now()
	for _, p := range rec.programs {
		var err error
		if fence, err = rec.b.dev.Submit(p); err != nil {
			return err
		}
		s.Dispatches += p.Commands()
		s.Submissions++
	}
	if fence == nil {
		return nil
	}
	if err := fence.Wait(rec.b.opts.Deadline + rec.time); err != nil {
		return err
	}
	rec.b.pace.measured(rec.lowered.list, time.Since(start))
	return nil
}

// forget closes the device's programs.
func (rec *recording) forget() error {
	var errs []error
	for _, p := range rec.programs {
		errs = append(errs, p.Close())
	}
	rec.programs, rec.time = nil, 0
	return errors.Join(errs...)
}
