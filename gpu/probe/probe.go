package probe

import (
	"slices"
	"strings"
	"time"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// Driver is a way to reach devices: one library.
type Driver struct {
	Name string // "vulkan", "gl"
	// List names the devices; Open opens one by its ID and Backend runs plans on it, which
	// closes the device with itself.
	List    func() ([]device.Info, error)
	Open    func(id string) (device.Device, error)
	Backend func(d device.Device, u Use) ops.Backend
	// Variants lists the kernels that stand for others where a device has an ability; nil:
	// there are none.
	Variants func() []*device.Shader
	// Bytes says that its kernels round activations to bytes in fast mode, which is then
	// compared less closely.
	Bytes bool
}

// Use is how a device is to be used.
type Use struct {
	Inexact  bool     // exact mode is refused
	Variants []string // kernels that stand for others in fast mode
}

// State says whether a device may be used.
type State string

// The states of a device.
const (
	// Untested devices were listed alone: software renderers that nobody asked for.
	Untested State = "untested"
	// Available devices passed every known-answer test.
	Available State = "available"
	// Quarantined devices are not used: Reason says why.
	Quarantined State = "quarantined"
)

// Device is one device as the appliance knows it.
type Device struct {
	device.Info
	Driven  string // name of the driver that reaches it
	Limits  device.Limits
	Caps    device.Caps
	State   State
	Reason  string    // why it is quarantined
	Inexact string    // why exact mode is refused; empty: it is not
	Missing []string  // known answers whose kernels do not exist on it
	Lacks   string    // why the first of these does not
	Answers int       // known answers that were compared
	Tested  time.Time // when
	// Losses are how often it was lost while it was used, since it was tested anew by
	// hand; Lost tells the last time.
	Losses int
	Lost   string
	// Ends are the tests in a row that came to no end: the child crashed, said nothing or
	// something else than messages, or lost the device. Another program that keeps the
	// device busy can do that to a good one.
	Ends int
	// Trials are what came of the kernels that make use of its abilities, once they were
	// tried (Tried).
	Trials []Trial
	Tried  bool
	// Rates are its speeds by model and mode, see RateKey.
	Rates map[string]Rates
}

// Exact tells whether exact mode may be asked of the device.
func (d *Device) Exact() bool { return d.Inexact == "" }

// Again tells whether the next start tests a quarantined device anew: one that was lost in
// use, or whose test came to no end, until that has happened too often. Then it waits for a
// test that somebody asks for, as one does that computes wrongly.
func (d *Device) Again() bool {
	return d.State == Quarantined && d.Ends < maxEnds && (d.Ends > 0 || d.Lost != "" && d.Losses < maxLosses)
}

// Rates are speeds in tokens per second.
type Rates struct {
	Prompt float64 `json:"prompt"`
	Decode float64 `json:"decode"`
	Carry  float64 `json:"carry"` // positions of KV caches that leave the device and come back; 0: none can
}

// RateKey names a model in a mode, with the kernels that are taken for their speed or with
// others.
func RateKey(modelHash string, n ops.Numerics, v Variants) string {
	key := modelHash + "/" + n.String()
	if v != "" && v != AutoVariants {
		key += "/" + string(v)
	}
	return key
}

// A request as they come: most of a prompt is in the cache already, so writing counts
// more than reading.
const (
	typicalPrompt = 256
	typicalText   = 128
)

// Seconds is how long a typical request takes; what was not measured takes for ever.
func (r Rates) Seconds() float64 {
	if r.Prompt <= 0 || r.Decode <= 0 {
		return 1e9
	}
	return typicalPrompt/r.Prompt + typicalText/r.Decode
}

// margin is how much faster a GPU must be than the processor to be worth its memory and
// its risks.
const margin = 1.1

// Best is the place of the fastest device in a list of rates, -1 for the processor, whose
// rates are cpu.
func Best(cpu Rates, devices []Rates) int {
	best, seconds := -1, cpu.Seconds()/margin
	for i, r := range devices {
		if s := r.Seconds(); s < seconds {
			best, seconds = i, s
		}
	}
	return best
}

// Places is where prompts and tokens go: places in a list of devices, -1 for the processor.
type Places struct{ Prompt, Decode int }

// Choose is Best, or two devices, one for each phase, where that is faster by the margin
// again, for it takes twice the memory. allowed tells whether two may be used.
func Choose(cpu Rates, devices []Rates, allowed func(Places) bool) Places {
	one := Best(cpu, devices)
	rates := func(i int) Rates {
		if i < 0 {
			return cpu
		}
		return devices[i]
	}
	best, seconds := Places{one, one}, rates(one).Seconds()/margin
	for p := -1; p < len(devices); p++ {
		for d := -1; d < len(devices); d++ {
			if s := apart(rates(p), rates(d)); p != d && s < seconds && allowed(Places{p, d}) {
				best, seconds = Places{p, d}, s
			}
		}
	}
	return best
}

// apart is how long a typical request takes with a device for each phase; its prompt is
// carried from one to the other.
func apart(prompt, decode Rates) float64 {
	if prompt.Prompt <= 0 || decode.Decode <= 0 || prompt.Carry <= 0 || decode.Carry <= 0 {
		return 1e9
	}
	return typicalPrompt/prompt.Prompt + typicalPrompt/prompt.Carry + typicalPrompt/decode.Carry + typicalText/decode.Decode
}

// Report is what is known of all devices.
type Report struct {
	Devices []Device
	Faults  []string // drivers that could not be asked, and why
}

// Find is the device of an ID or a name, of an API when one is given; hardware comes
// before software. ok is false when there is none.
func (r Report) Find(api device.API, name string) (d Device, ok bool) {
	fits := func(d Device) bool {
		return (api == "" || d.API == api) && (name == "" || d.ID == name || matches(d.Name, name))
	}
	for _, software := range []bool{false, true} {
		if i := slices.IndexFunc(r.Devices, func(d Device) bool { return d.Software == software && fits(d) }); i >= 0 {
			return r.Devices[i], true
		}
	}
	return Device{}, false
}

// matches tells whether a device's name holds what somebody typed, whatever the case.
func matches(name, typed string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(typed))
}
