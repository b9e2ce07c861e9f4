package devicetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"ganglion/gpu/device"
)

// faultyProgram is a program in parts. A kernel whose output is altered is a part of its
// own, so that what changes while the part runs is what that kernel wrote.
type faultyProgram struct {
	d        *Faulty
	commands int
	parts    []part
}

type part struct {
	device.Program
	fault   Fault          // of the command, when it is one that is altered
	outputs []device.Range // of that command
}

// NewProgram records commands, in parts where a kernel gives wrong results.
func (d *Faulty) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	if err := d.Health(); err != nil {
		return nil, err
	}
	commands = d.inner(commands)
	p := &faultyProgram{d: d, commands: len(commands)}
	begin := 0
	for i, c := range commands {
		f, wrong := d.wrong(c.Kernel)
		if !wrong {
			continue
		}
		if begin < i {
			if err := p.add(commands[begin:i], o, part{}); err != nil {
				p.Close()
				return nil, err
			}
		}
		if err := p.add(commands[i:i+1], o, part{fault: f, outputs: outputs(c)}); err != nil {
			p.Close()
			return nil, err
		}
		begin = i + 1
	}
	if begin < len(commands) || len(p.parts) == 0 {
		if err := p.add(commands[begin:], o, part{}); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

func (p *faultyProgram) add(commands []device.Command, o device.ProgramOptions, x part) (err error) {
	if x.Program, err = p.d.Device.NewProgram(commands, o); err == nil {
		p.parts = append(p.parts, x)
	}
	return err
}

// inner gives the commands with the buffers of the device under the faults.
func (d *Faulty) inner(commands []device.Command) []device.Command {
	commands = slices.Clone(commands)
	for i := range commands {
		c := &commands[i]
		c.Bindings = slices.Clone(c.Bindings)
		for j := range c.Bindings {
			if b, ok := c.Bindings[j].Buffer.(*faultyBuffer); ok && b.d == d {
				c.Bindings[j].Buffer = b.Buffer
			}
		}
	}
	return commands
}

// wrong gives the fault of a kernel whose results are altered.
func (d *Faulty) wrong(k device.Kernel) (Fault, bool) {
	if k == nil {
		return Fault{}, false
	}
	i := slices.IndexFunc(d.faults, func(f Fault) bool { return f.Kind == WrongKernel && f.Kernel == k.Shader().Name })
	if i < 0 {
		return Fault{}, false
	}
	return d.faults[i], true
}

// outputs are the ranges that a command may write, each once.
func outputs(c device.Command) (all []device.Range) {
	for i, b := range c.Kernel.Shader().Bindings {
		if b.ReadOnly || i >= len(c.Bindings) || c.Bindings[i].Buffer == nil {
			continue
		}
		r := c.Bindings[i]
		if r.Size == 0 {
			r.Size = r.Buffer.Size() - r.Offset
		}
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// Commands counts the dispatches.
func (p *faultyProgram) Commands() int { return p.commands }

// Close closes all parts.
func (p *faultyProgram) Close() (err error) {
	for _, x := range p.parts {
		if e := x.Close(); err == nil {
			err = e
		}
	}
	return err
}

// Submit counts a submission and runs it with what is wrong about it. The parts of a
// program with a wrong kernel run here, one after another, but the last.
func (d *Faulty) Submit(dp device.Program) (device.Fence, error) {
	if err := d.Health(); err != nil {
		return nil, err
	}
	p, ok := dp.(*faultyProgram)
	if !ok || p.d != d {
		return d.Device.Submit(dp) // the device's to refuse
	}
	d.submissions++
	here := func(f Fault) bool { return f.hits(d.submissions) }
	if _, ok := d.strike(Stale, here); ok {
		return &faultyFence{d: d}, nil
	}
	if h, ok := d.strike(Hang, here); ok {
		return &faultyFence{d: d, fate: device.ErrTimeout, soon: h.Soon}, nil
	}
	if _, ok := d.strike(Lost, here); ok {
		return &faultyFence{d: d, fate: device.ErrLost}, nil
	}
	f := &faultyFence{d: d}
	if t, ok := d.strike(WrongTile, here); ok {
		f.tile = &t
	}
	for i := range p.parts {
		if p.parts[i].strikes(here) && len(f.inner) > 0 {
			if err := f.inner[len(f.inner)-1].Wait(patience); err != nil {
				return nil, fmt.Errorf("devicetest: waiting for what comes before a kernel to alter: %w", err)
			}
		}
		inner, err := p.parts[i].submit(d, here)
		if err != nil {
			return nil, err
		}
		f.inner = append(f.inner, inner)
	}
	return f, nil
}

// strikes tells whether the part is a kernel that gives wrong results this time.
func (x *part) strikes(here func(Fault) bool) bool { return len(x.outputs) > 0 && here(x.fault) }

// submit runs a part; where its kernel gives wrong results, to its end.
func (x *part) submit(d *Faulty, here func(Fault) bool) (device.Fence, error) {
	if !x.strikes(here) {
		return d.Device.Submit(x.Program)
	}
	before, err := contents(x.outputs)
	if err != nil {
		return nil, err
	}
	f, err := d.Device.Submit(x.Program)
	if err != nil {
		return nil, err
	}
	if err := f.Wait(patience); err != nil {
		return nil, fmt.Errorf("devicetest: waiting for a kernel to alter: %w", err)
	}
	return f, x.alter(d, before)
}

// alter alters a tile of what has changed since before.
func (x *part) alter(d *Faulty, before [][]byte) error {
	after, err := contents(x.outputs)
	if err != nil {
		return err
	}
	skip, left, struck := x.fault.Offset, x.fault.tile(), false
	for i, r := range x.outputs {
		if x.fault.Output > 0 && i != x.fault.Output-1 {
			continue
		}
		results := bytes.Clone(after[i])
		for at := 0; at+4 <= len(after[i]) && left > 0; at += 4 {
			word := after[i][at : at+4]
			if bytes.Equal(word, before[i][at:at+4]) {
				continue
			}
			if skip -= 4; skip >= 0 {
				continue
			}
			x.fault.How.word(after[i], before[i], results, at)
			left -= 4
			struck = struck || !bytes.Equal(word, results[at:at+4])
		}
		if err := r.Buffer.Write(r.Offset, after[i]); err != nil {
			return err
		}
	}
	if struck {
		d.note(x.fault)
	}
	return nil
}

// contents reads ranges.
func contents(ranges []device.Range) (all [][]byte, err error) {
	for _, r := range ranges {
		data := make([]byte, r.Size)
		if err := r.Buffer.Read(r.Offset, data); err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// faultyFence is a submission with a fate.
type faultyFence struct {
	d     *Faulty
	fate  error  // ErrLost, ErrTimeout
	soon  bool   // see Fault
	tile  *Fault // to alter when the submission has ended
	inner []device.Fence
}

// Wait sleeps as the device does, or for all of its time when the fence never passes.
func (f *faultyFence) Wait(timeout time.Duration) error {
	switch f.fate {
	case device.ErrTimeout:
		if !f.soon {
			time.Sleep(timeout)
		}
		return f.d.end(f.fate)
	case device.ErrLost:
		return f.d.end(f.fate)
	}
	until := time.Now().Add(timeout)
	for _, inner := range f.inner {
		if err := inner.Wait(max(0, time.Until(until))); err != nil {
			return err
		}
	}
	if t := f.tile; t != nil {
		f.tile = nil
		return f.d.alterTile(*t)
	}
	return nil
}

// Times are those of the parts.
func (f *faultyFence) Times() (all []time.Duration) {
	for _, inner := range f.inner {
		all = append(all, inner.Times()...)
	}
	return all
}
