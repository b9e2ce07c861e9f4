package probe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// Kernels that make use of an ability stand for kernels of the base set and give the same
// bits. They are taken where the device has the ability, gave the right bits with it, and
// was measured to be faster with it.

// Variants says which of them are taken.
type Variants string

// What is taken.
const (
	AutoVariants Variants = "auto" // those that are right and were measured to be faster
	AllVariants  Variants = "all"  // those that are right
	NoVariants   Variants = "none" // none, and none is tried
)

// Trial is what came of the kernels that make use of an ability of a device.
type Trial struct {
	Needs   device.Ability `json:"needs"`
	Fault   string         `json:"fault,omitempty"` // why none of them is used
	Kernels []Timed        `json:"kernels,omitempty"`
	// Ends are the trials in a row that came to no end, as those of a device's test.
	Ends int `json:"ends,omitempty"`
}

// Again tells whether the next start tries the kernels anew: where the trial came to no end,
// until that has happened too often. One that found a wrong bit, or was refused, is over.
func (t Trial) Again() bool { return t.Ends > 0 && t.Ends < maxEnds }

// Timed is how long a kernel took, and that of the base set that it stands for, in the same
// work.
type Timed struct {
	Kernel string  `json:"kernel"`
	MS     float64 `json:"ms"`
	BaseMS float64 `json:"base_ms"`
}

// gain is how much faster a kernel must be to be taken: less may be chance.
const gain = 1.05

// Faster tells whether the kernel is worth taking.
func (t Timed) Faster() bool { return t.MS > 0 && gain*t.MS < t.BaseMS }

// Variants are the kernels that stand for others on the device.
func (d *Device) Variants(which Variants) (names []string) {
	for _, t := range d.Trials {
		for _, k := range t.Kernels {
			if t.Fault == "" && (which == AllVariants || which != NoVariants && k.Faster()) {
				names = append(names, k.Kernel)
			}
		}
	}
	return names
}

// trial is a trial that is under way, in the child.
type trial struct {
	driver Driver
	d      device.Device
	needs  device.Ability
	bases  map[string]string // of the kernels in question: what each stands for
	say    func(message)
}

// tryDevice tries the kernels of an ability.
func tryDevice(say func(message), driver Driver, id string, needs device.Ability) (err error) {
	d, err := driver.Open(id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	t := newTrial(say, driver, d, needs)
	result, err := t.run(fullSize)
	if err == nil {
		say(message{Trial: &result})
	}
	return err
}

func newTrial(say func(message), driver Driver, d device.Device, needs device.Ability) *trial {
	t := &trial{driver: driver, d: d, needs: needs, bases: map[string]string{}, say: say}
	if driver.Variants == nil || !d.Caps().Has(needs) {
		return t
	}
	for _, s := range driver.Variants() {
		if s.Needs == needs {
			t.bases[s.Name] = s.Base
		}
	}
	return t
}

// run compares bits and then times. Work is smaller by the divisor, for tests.
func (t *trial) run(divisor int) (Trial, error) {
	result := Trial{Needs: t.needs}
	if len(t.bases) == 0 {
		return result, nil
	}
	right, fault, err := t.compare()
	if err != nil {
		return result, err
	}
	if fault != "" {
		result.Fault = fault
		return result, nil
	}
	for _, w := range workloads(t.needs, divisor) {
		times, err := t.time(w)
		if err != nil {
			return result, fmt.Errorf("%s: %w", w.name, err)
		}
		for _, k := range times {
			at := slices.IndexFunc(result.Kernels, func(o Timed) bool { return o.Kernel == k.Kernel })
			switch {
			case !right[k.Kernel]: // nothing is known of its bits
			case at < 0:
				result.Kernels = append(result.Kernels, k)
			default:
				result.Kernels[at].MS += k.MS
				result.Kernels[at].BaseMS += k.BaseMS
			}
		}
		t.say(message{Step: "the time of " + w.name})
	}
	slices.SortFunc(result.Kernels, func(a, b Timed) int { return cmp.Compare(a.Kernel, b.Kernel) })
	return result, nil
}

// names are the kernels in question.
func (t *trial) names() (all []string) {
	for name := range t.bases {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// backend runs plans on the device, which stays open, with or without the kernels in
// question.
func (t *trial) backend(d device.Device, with bool) ops.Backend {
	u := Use{}
	if with {
		u.Variants = t.names()
	}
	return t.driver.Backend(held{d}, u)
}

// held is a device that stays open.
type held struct{ device.Device }

func (held) Close() error { return nil }

// compare puts the questions that make use of the ability to the device, with the kernels in
// question and without: the answers have the same bits. right are the kernels that took part.
// An error is no fault of theirs, or may be none: the base set failed, the device was lost or
// had no memory.
func (t *trial) compare() (right map[string]bool, fault string, err error) {
	right = map[string]bool{}
	for _, q := range questionsOf(t.needs) {
		base := t.backend(t.d, false)
		want, err := q.run(base, ops.Fast)
		if err = errors.Join(err, base.Close()); err != nil {
			return nil, "", fmt.Errorf("%s, without it: %w", q.name, err)
		}
		n := &noting{Device: t.d}
		own := t.backend(n, true)
		got, err := q.run(own, ops.Fast)
		err = errors.Join(err, own.Close())
		var used []string
		for _, name := range n.compiled {
			if t.bases[name] != "" && !right[name] {
				used = append(used, name)
			}
		}
		slices.Sort(used)
		what := fmt.Sprintf("%s with %s", q.name, strings.Join(used, ", "))
		switch {
		case errors.Is(err, ops.ErrDeviceLost), errors.Is(err, ops.ErrOutOfMemory):
			return nil, "", fmt.Errorf("%s: %w", what, err)
		case err != nil:
			fault = err.Error()
		default:
			fault = compare(got, want, ops.Exact, 0)
		}
		if fault != "" {
			return nil, what + ": " + fault, nil
		}
		for _, name := range used {
			right[name] = true
		}
		t.say(message{Step: q.name})
	}
	return right, "", nil
}

// noting is a device that notes which kernels were compiled.
type noting struct {
	device.Device
	compiled []string
}

func (n *noting) NewKernel(s *device.Shader, constants []uint32) (device.Kernel, error) {
	if !slices.Contains(n.compiled, s.Name) {
		n.compiled = append(n.compiled, s.Name)
	}
	return n.Device.NewKernel(s, constants)
}

// questionsOf are the questions that make use of every kernel of an ability.
func questionsOf(needs device.Ability) (list []*question) {
	names := map[device.Ability][]string{
		device.Subgroups: {"vocabulary", "candidates"},
		device.Dot4: {"matmul/Q4_0", "matmul/Q4_K", "matmul/Q5_0", "matmul/Q6_K", "matmul/Q8_0", "matmul/IQ2_S",
			"experts/softmax/Q4_K", "layer/f16", "layer/q8_0"},
	}[needs]
	for _, q := range questions() {
		if slices.Contains(names, q.name) {
			list = append(list, q)
		}
	}
	return list
}
