package devicetest

import (
	"slices"

	"ganglion/gpu/device"
)

// Backward is a device that runs what stands between two barriers from the last command to
// the first. Commands may run in any order there, and GPUs make use of it, while software
// renderers run them as they were recorded: a barrier that is missing shows on them only
// in such an order.
type Backward struct {
	device.Device
	// Moved counts the commands that were recorded in another place than their own.
	Moved int
}

// Backwards has a device run commands backwards between barriers.
func Backwards(d device.Device) *Backward { return &Backward{Device: d} }

// NewProgram records the commands in the other order.
func (d *Backward) NewProgram(commands []device.Command, o device.ProgramOptions) (device.Program, error) {
	commands = slices.Clone(commands)
	for from := 0; from < len(commands); {
		to := from + 1
		for to < len(commands) && !commands[to].Barrier {
			to++
		}
		beside := commands[from:to]
		barrier := beside[0].Barrier
		beside[0].Barrier = false
		slices.Reverse(beside)
		beside[0].Barrier = barrier // stands before all of them
		d.Moved += len(beside) &^ 1 // the middle of an odd number stays
		from = to
	}
	return d.Device.NewProgram(commands, o)
}
