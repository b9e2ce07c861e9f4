package probe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"ganglion/gpu/device"
)

// How long a child may take.
const (
	// DefaultListing is for the list of a driver's devices.
	DefaultListing = 10 * time.Second
	// DefaultSilence is for compiling and running the kernels of one question. A renderer
	// on a busy processor takes seconds, and a device that is quarantined for that would
	// be lost for no fault of its own.
	DefaultSilence = 30 * time.Second
	// DefaultWhole is for all of them on the slowest devices.
	DefaultWhole = 15 * time.Minute
)

// Prober runs probes in child processes. It is safe for concurrent use.
type Prober struct {
	// Command makes the child's command line: a process that calls Child with these
	// arguments and writes to its standard output.
	Command func(ctx context.Context, args ...string) *exec.Cmd
	// Silence is how long a child may say and do nothing; 0 is DefaultListing or
	// DefaultSilence. Where the system tells how much of a processor the child gets, one
	// that computes is given maxSilences times as long: compilers do, and renderers.
	Silence time.Duration
	Whole   time.Duration // 0 is DefaultWhole
}

// maxSilences is how many times as long a child may compute without a word.
const maxSilences = 10

// errAbsent says that the machine does not have the driver, which is no fault.
var errAbsent = errors.New("probe: not on this machine")

// List names the devices of a driver.
func (p *Prober) List(ctx context.Context, driver string) (infos []device.Info, err error) {
	err = p.run(ctx, func(m message) error {
		if m.Device == nil || m.Device.ID == "" {
			return errors.New("a device without an ID")
		}
		infos = append(infos, *m.Device)
		return nil
	}, taskList, driver)
	return infos, err
}

// Test opens a device and puts every question to it. A device that fails is quarantined;
// there is always an answer.
func (p *Prober) Test(ctx context.Context, driver string, info device.Info, now time.Time) Device {
	d := Device{Info: info, Driven: driver, State: Available, Tested: now}
	last := ""
	err := p.run(ctx, func(m message) error {
		switch {
		case m.Opened != nil:
			d.Info, d.Limits, d.Caps = m.Opened.Info, m.Opened.Limits, m.Opened.Caps
			d.ID = info.ID
		case m.Answer != nil:
			last = m.Answer.Name
			d.judge(m.Answer)
		default:
			return errors.New("a message of no kind")
		}
		return nil
	}, taskTest, driver, info.ID)
	if err != nil && d.State != Quarantined { // one that computes wrongly is no better for a crash
		d.Ends = 1
	}
	switch {
	case err != nil && last != "":
		d.quarantine(fmt.Sprintf("%v, after %s", err, last))
	case err != nil:
		d.quarantine(err.Error())
	case d.Answers == 0 && d.State == Available:
		d.quarantine("it answers nothing: " + d.Lacks)
	}
	return d
}

// Opens tells whether a device can be opened and keeps what is written to it; nil says that
// it does. It is as quick as that is, and takes no longer than ctx lasts.
func (p *Prober) Opens(ctx context.Context, driver, id string) error {
	done := make(chan error, 1)
	go func() {
		done <- p.run(ctx, func(message) error { return errors.New("a message of no kind") }, taskOpen, driver, id)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // a child that hangs in its driver does not end at once
		return fmt.Errorf("probe: open: %w", ctx.Err())
	}
}

// Try tries the kernels that make use of an ability in a child of their own: what becomes
// of it is said of them, and not of the device.
func (p *Prober) Try(ctx context.Context, driver, id string, a device.Ability) Trial {
	t := Trial{Needs: a}
	last := ""
	err := p.run(ctx, func(m message) error {
		switch {
		case m.Step != "":
			last = m.Step
		case m.Trial != nil:
			t = *m.Trial
		default:
			return errors.New("a message of no kind")
		}
		return nil
	}, taskTry, driver, id, string(a))
	if err != nil {
		t = Trial{Needs: a, Fault: err.Error(), Ends: 1}
		if last != "" {
			t.Fault += ", after " + last
		}
	}
	return t
}

// judge takes an answer in.
func (d *Device) judge(a *Answer) {
	switch {
	case a.Missing:
		if d.Lacks == "" {
			d.Lacks = a.Fault
		}
		if a.Mode != "exact" {
			d.Missing = append(d.Missing, a.Name)
		}
		return
	case a.Fault == "":
	case a.Mode == "exact" && !a.Lost:
		if d.Inexact == "" {
			d.Inexact = a.Name + ": " + a.Fault
		}
	default:
		if a.Lost && d.State != Quarantined {
			d.Ends = 1
		}
		d.quarantine(a.Name + ": " + a.Fault)
	}
	d.Answers++
}

// quarantine keeps the first reason.
func (d *Device) quarantine(reason string) {
	if d.State != Quarantined {
		d.State, d.Reason = Quarantined, reason
	}
}

// run starts a child and hands its messages to take until it is done. Whatever becomes of
// the child is an error: a crash, a hang, an end without one.
func (p *Prober) run(ctx context.Context, take func(message) error, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, orDefault(p.Whole, DefaultWhole))
	defer cancel()
	cmd := p.Command(ctx, args...)
	cmd.WaitDelay = time.Second
	var said tail
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	lines := make(chan []byte)
	var reader sync.WaitGroup
	stop := make(chan struct{})
	var unread error // set before lines is closed
	reader.Go(func() {
		defer close(lines)
		unread = scan(out, lines, stop)
	})
	silence := DefaultSilence
	if args[0] == taskList {
		silence = DefaultListing
	}
	end, fault := listen(ctx, lines, orDefault(p.Silence, silence), cmd.Process.Pid, take)
	if end == nil && fault == nil && unread != nil {
		fault = fmt.Errorf("the probe wrote something else than messages: %w", unread)
	}
	if fault != nil {
		_ = cmd.Process.Kill()
	}
	close(stop)
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	select {
	case err = <-waited:
	case <-time.After(5 * time.Second): // in the driver, where nothing can end it: left behind
		_ = cmd.Process.Kill()
		return orError(fault, errors.New("the probe does not end"))
	}
	reader.Wait()
	switch {
	case fault != nil:
		return fault
	case end == nil:
		return fmt.Errorf("the driver ended the probe: %s", ending(err, &said))
	case end.Absent:
		return fmt.Errorf("%w: %s", errAbsent, end.Error)
	case end.Error != "":
		return errors.New(end.Error)
	}
	return nil
}

// listen takes messages until the last one, which it returns; nil when there was none.
func listen(ctx context.Context, lines <-chan []byte, silence time.Duration, pid int, take func(message) error) (*message, error) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	silences, spent := 0, processorTime(pid)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil, nil
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				return nil, fmt.Errorf("the probe wrote something else than messages: %w", err)
			}
			if m.Done || m.Error != "" {
				return &m, nil
			}
			if err := take(m); err != nil {
				return nil, fmt.Errorf("the probe wrote %w", err)
			}
			timer.Reset(silence)
			silences, spent = 0, processorTime(pid)
		case <-timer.C:
			silences++
			now := processorTime(pid)
			if now-spent < silence/20 || silences == maxSilences {
				return nil, fmt.Errorf("the driver hangs: nothing for %v", time.Duration(silences)*silence)
			}
			spent = now
			timer.Reset(silence)
		case <-ctx.Done():
			return nil, fmt.Errorf("the probe was ended: %w", context.Cause(ctx))
		}
	}
}

// scan sends lines until the end of the child's output.
func scan(out io.Reader, lines chan<- []byte, stop <-chan struct{}) error {
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		select {
		case lines <- bytes.Clone(s.Bytes()):
		case <-stop:
			return nil
		}
	}
	return s.Err()
}

// tail keeps the end of what a child writes to its standard error.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 2 << 10
	t.text = append(t.text, b...)
	if n := len(t.text); n > most {
		t.text = append(t.text[:0], t.text[n-most:]...)
	}
	return len(b), nil
}

// ending says how a process ended, with the first line that it wrote.
func ending(err error, said *tail) string {
	text, _, _ := strings.Cut(strings.TrimSpace(string(said.text)), "\n")
	switch {
	case err == nil && text == "":
		return "it ended without a word"
	case err == nil:
		return text
	case text == "":
		return err.Error()
	}
	return err.Error() + ": " + text
}

func orDefault(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

func orError(err, other error) error {
	if err == nil {
		return other
	}
	return err
}
