package devicetest

import (
	"fmt"
	"slices"
	"testing"

	"ganglion/gpu/device"
)

// recorded keeps the commands of the last program.
type recorded struct {
	device.Device
	commands []device.Command
}

func (d *recorded) NewProgram(commands []device.Command, _ device.ProgramOptions) (device.Program, error) {
	d.commands = commands
	return nil, nil
}

// What stands between two barriers is turned round, and the barriers stay between them.
func TestBackwards(t *testing.T) {
	for _, tt := range []struct {
		program, want string // commands by number, a barrier is |
		moved         int
	}{
		{"", "", 0},
		{"0", "0", 0},
		{"|0", "|0", 0},
		{"|012|3|45", "|210|3|54", 4},
		{"01|23", "10|32", 4},
	} {
		var commands []device.Command
		barrier := false
		for _, c := range tt.program {
			if c != '|' {
				commands = append(commands, device.Command{Params: []byte{byte(c)}, Barrier: barrier})
			}
			barrier = c == '|'
		}
		given := slices.Clone(commands)
		inner := &recorded{}
		d := Backwards(inner)
		if _, err := d.NewProgram(commands, device.ProgramOptions{}); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range inner.commands {
			if c.Barrier {
				got += "|"
			}
			got += string(c.Params)
		}
		if got != tt.want || d.Moved != tt.moved {
			t.Errorf("%q became %q, %d moved, want %q, %d", tt.program, got, d.Moved, tt.want, tt.moved)
		}
		if fmt.Sprint(given) != fmt.Sprint(commands) {
			t.Errorf("%q: the caller's commands were changed", tt.program)
		}
	}
}
