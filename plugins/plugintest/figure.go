package plugintest

import (
	"fmt"
	"slices"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
)

// Figure is what calls of one hook cost.
type Figure struct {
	Calls   int     `json:"calls"`
	P50US   float64 `json:"p50_us"`
	P99US   float64 `json:"p99_us"`
	MaxUS   float64 `json:"max_us"`
	P50Fuel int64   `json:"p50_fuel"`
	P99Fuel int64   `json:"p99_fuel"`
	MaxFuel int64   `json:"max_fuel"`
}

// figuresOf makes figures of runs of the same scene. A call's time is the least of all
// runs, so that what else the machine did is left out.
func figuresOf(runs [][]call) map[string]Figure {
	times, fuels := map[abi.Hook][]time.Duration{}, map[abi.Hook][]int64{}
	for i, c := range runs[0] {
		for _, r := range runs[1:] {
			if i < len(r) {
				c.time = min(c.time, r[i].time)
			}
		}
		times[c.hook] = append(times[c.hook], c.time)
		fuels[c.hook] = append(fuels[c.hook], c.fuel)
	}
	out := map[string]Figure{}
	for h, t := range times {
		f := fuels[h]
		slices.Sort(t)
		slices.Sort(f)
		n := len(t)
		us := func(d time.Duration) float64 { return round(float64(d.Nanoseconds()) / 1000) }
		out[h.String()] = Figure{
			Calls: n, P50US: us(t[n/2]), P99US: us(t[n*99/100]), MaxUS: us(t[n-1]),
			P50Fuel: f[n/2], P99Fuel: f[n*99/100], MaxFuel: f[n-1],
		}
	}
	return out
}

// Badge is a report in the form of shields.io's endpoint badges.
type Badge struct {
	SchemaVersion int    `json:"schemaVersion"`
	Label         string `json:"label"`
	Message       string `json:"message"`
	Color         string `json:"color"`
}

// Badge makes the badge of a report.
func (r *Report) Badge() Badge {
	b := Badge{SchemaVersion: 1, Label: "ganglion plugin " + r.ABI, Color: "brightgreen"}
	passed, made := 0, 0
	for _, c := range r.Checks {
		if c.Skipped == "" {
			made++
		}
		if c.Passed {
			passed++
		}
	}
	b.Message = fmt.Sprintf("%d of %d checks", passed, made)
	if !r.Passed {
		b.Color = "red"
		return b
	}
	var worst float64
	for name, f := range r.Hooks {
		if name == abi.HookOpen.String() {
			continue
		}
		worst = max(worst, f.P99US)
	}
	if worst > 0 {
		b.Message += fmt.Sprintf(", p99 %.3g µs", worst)
	}
	return b
}

func dropTests(file []byte) ([]byte, error) { return wasm.DropCustom(file, abi.SectionTests) }
