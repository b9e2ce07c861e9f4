package probe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ganglion/gpu/device"
)

// maxRates bounds how many models' speeds are kept of a device.
const maxRates = 64

// maxLosses is how often a device may be lost before it stays quarantined over a restart,
// maxEnds how many of its tests in a row may come to no end.
const (
	maxLosses = 3
	maxEnds   = 3
)

// Book is what is known of the machine's devices, in memory and on disk. It is safe for
// concurrent use. A file that is damaged, or of another driver or set of kernels, counts
// as none; what cannot be written is probed again at the next start.
type Book struct {
	Prober  *Prober
	Drivers []string      // names of the drivers to ask
	Dir     string        // "" keeps nothing
	Kernels func() string // names the set of kernels; asked when a device is looked up
	Now     func() time.Time
	Untried bool // leaves kernels that make use of abilities alone

	asking sync.Mutex // held while a child runs
	mu     sync.Mutex // of what follows
	report *Report    // nil: nothing was asked yet
	kept   error      // the first file that could not be written
}

// entry is the content of a file.
type entry struct {
	Kernels string
	Device  Device
}

// Find asks all drivers for their devices and tests those that nothing is known of, all
// of them with retest. Software renderers are tested when their name is asked for. The
// drivers are asked once; later calls give what is known now.
func (b *Book) Find(ctx context.Context, retest bool) Report {
	b.asking.Lock()
	defer b.asking.Unlock()
	b.mu.Lock()
	asked := b.report != nil
	b.mu.Unlock()
	if !asked || retest {
		r := b.ask(ctx, retest)
		b.mu.Lock()
		b.report = r
		b.mu.Unlock()
	}
	return b.Known()
}

// Known is what was found so far, without asking anybody.
func (b *Book) Known() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.report == nil {
		return Report{}
	}
	return Report{Devices: slices.Clone(b.report.Devices), Faults: slices.Clone(b.report.Faults)}
}

func (b *Book) ask(ctx context.Context, retest bool) *Report {
	found := make([][]device.Info, len(b.Drivers))
	faults := make([]error, len(b.Drivers))
	var wg sync.WaitGroup
	for i, name := range b.Drivers {
		wg.Go(func() { found[i], faults[i] = b.Prober.List(ctx, name) })
	}
	wg.Wait()
	r := &Report{}
	for i, name := range b.Drivers {
		if err := faults[i]; err != nil && !errors.Is(err, errAbsent) {
			r.Faults = append(r.Faults, fmt.Sprintf("%s: %v", name, err))
		}
		for _, info := range found[i] {
			d, known := b.read(name, info)
			switch {
			case known && !retest:
				d = b.again(ctx, name, d)
			case info.Software && !(known && d.State != Untested):
				d = Device{Info: info, Driven: name, State: Untested}
			default:
				d = b.test(ctx, name, info)
			}
			d = b.try(ctx, d)
			r.Devices = append(r.Devices, d)
		}
	}
	return r
}

// again tests a device anew at the beginning of a start where there is hope for it.
func (b *Book) again(ctx context.Context, driver string, d Device) Device {
	if !d.Again() {
		return d
	}
	again := b.Prober.Test(ctx, driver, d.Info, b.Now())
	if ctx.Err() != nil {
		return d
	}
	again.Losses, again.Lost, again.Rates = d.Losses, d.Lost, d.Rates
	switch {
	case again.Ends > 0:
		again.Ends += d.Ends
	case again.State == Quarantined: // it computes wrongly, which is not for having been lost
		again.Lost = ""
	}
	b.keep(again)
	return again
}

// test probes a device and keeps the result.
func (b *Book) test(ctx context.Context, driver string, info device.Info) Device {
	d := b.Prober.Test(ctx, driver, info, b.Now())
	if ctx.Err() == nil { // who interrupts a probe says nothing of the device
		b.keep(d)
	}
	return d
}

// try tries the kernels that make use of a device's abilities when it is first used, and
// at later starts those whose trial came to no end; it keeps the result. A renderer has forms
// of its own in their places.
func (b *Book) try(ctx context.Context, d Device) Device {
	if b.Untried || d.State != Available || d.Software || d.Tried && !slices.ContainsFunc(d.Trials, Trial.Again) {
		return d
	}
	tried := d
	tried.Tried, tried.Trials = true, nil
	for _, a := range device.Abilities() {
		if !d.Caps.Has(a) {
			continue
		}
		var old Trial
		if at := slices.IndexFunc(d.Trials, func(t Trial) bool { return t.Needs == a }); at >= 0 {
			old = d.Trials[at]
		}
		if d.Tried && !old.Again() {
			tried.Trials = append(tried.Trials, old)
			continue
		}
		t := b.Prober.Try(ctx, d.Driven, d.ID, a)
		if t.Ends > 0 {
			t.Ends += old.Ends
		}
		tried.Trials = append(tried.Trials, t)
	}
	if ctx.Err() != nil {
		return d
	}
	if !slices.Equal(tried.Variants(AutoVariants), d.Variants(AutoVariants)) {
		tried.Rates = nil // they were measured with other kernels
	}
	b.keep(tried)
	return tried
}

// Opens tells in a child process whether a device can be opened, where there are children.
func (b *Book) Opens(ctx context.Context, d Device) error {
	if b.Prober.Command == nil {
		return nil
	}
	return b.Prober.Opens(ctx, d.Driven, d.ID)
}

// Ready is the device for use: a software renderer, which is found untested, is tested
// now that it is asked for.
func (b *Book) Ready(ctx context.Context, d Device) Device {
	if d.State != Untested {
		return d
	}
	b.asking.Lock()
	defer b.asking.Unlock()
	d = b.test(ctx, d.Driven, d.Info)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(d)
	return d
}

// Lose says that a device was lost while it was used: it is quarantined until the next
// start, and after some losses until a test that somebody asks for.
func (b *Book) Lose(id string, api device.API, reason string) {
	b.change(id, api, func(d *Device) {
		d.Losses++
		d.Lost = b.Now().UTC().Format(time.RFC3339) + ": " + reason
		d.State, d.Reason = Quarantined, "it was lost: "+reason
	})
}

// Rates are the speeds that were kept of a device for a model.
func (b *Book) Rates(d Device, key string) (r Rates, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.report != nil {
		if i := b.index(d); i >= 0 {
			r, ok = b.report.Devices[i].Rates[key]
			return r, ok
		}
	}
	kept, known := b.read(d.Driven, d.Info)
	r, ok = kept.Rates[key]
	return r, known && ok
}

// SetRates keeps how fast a device runs a model; one that Find does not find, such as the
// processor, has its rates on disk alone.
func (b *Book) SetRates(d Device, key string, r Rates) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := -1
	if b.report != nil {
		found = b.index(d)
	}
	if found >= 0 {
		d = b.report.Devices[found]
	} else if kept, ok := b.read(d.Driven, d.Info); ok {
		d = kept
	}
	rates := map[string]Rates{key: r}
	for k, v := range d.Rates {
		if k != key && len(rates) < maxRates {
			rates[k] = v
		}
	}
	d.Rates = rates
	if found >= 0 {
		b.enter(d)
	}
	b.write(d)
}

// index is the place of a device in the report.
func (b *Book) index(d Device) int {
	return slices.IndexFunc(b.report.Devices, func(o Device) bool { return o.ID == d.ID && o.API == d.API })
}

func (b *Book) change(id string, api device.API, f func(*Device)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.report == nil {
		return
	}
	for _, d := range b.report.Devices {
		if d.ID == id && d.API == api {
			f(&d)
			b.enter(d)
			b.write(d)
		}
	}
}

// enter puts a device in the place of what was known of it.
func (b *Book) enter(d Device) {
	if b.report == nil {
		b.report = &Report{}
	}
	devices := slices.Clone(b.report.Devices)
	if i := b.index(d); i >= 0 {
		devices[i] = d
	} else {
		devices = append(devices, d)
	}
	b.report.Devices = devices
}

// Kept is why results could not be kept on disk, nil when they could.
func (b *Book) Kept() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

func (b *Book) path(driver string, info device.Info) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", driver, info.API, info.ID))
	return filepath.Join(b.Dir, "devices", hex.EncodeToString(sum[:12])+".json")
}

// read is what an earlier start kept of a device.
func (b *Book) read(driver string, info device.Info) (d Device, ok bool) {
	if b.Dir == "" {
		return d, false
	}
	data, err := os.ReadFile(b.path(driver, info))
	if err != nil || len(data) > 1<<20 {
		return d, false
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return d, false
	}
	d = e.Device
	ok = e.Kernels == b.Kernels() && d.ID == info.ID && d.API == info.API && d.Driver == info.Driver && d.Driven == driver &&
		(d.State == Available || d.State == Quarantined)
	return d, ok
}

func (b *Book) keep(d Device) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.write(d)
}

// write keeps a device, whole or not at all.
func (b *Book) write(d Device) {
	if b.Dir == "" {
		return
	}
	if err := writeFile(b.path(d.Driven, d.Info), entry{b.Kernels(), d}); err != nil && b.kept == nil {
		b.kept = fmt.Errorf("probe: %w", err)
	}
}

func writeFile(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
