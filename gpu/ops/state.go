package ops

import "fmt"

// SaveStates copies the recurrent states of one slot, in plan order, one after
// another, into into[:0]; it is empty when there are none. It is Runtime.SaveState for
// a backend whose states lie in memory the host can read.
func SaveStates(states [][]float32, into []float32) []float32 {
	saved := into[:0]
	for _, s := range states {
		saved = append(saved, s...)
	}
	return saved
}

// LoadStates puts what SaveStates gave back into the states of a slot; nil sets the
// state of position 0, which is zero.
func LoadStates(states [][]float32, saved []float32) error {
	want := 0
	for _, s := range states {
		want += len(s)
	}
	if saved != nil && len(saved) != want {
		return fmt.Errorf("ops: load state: %d floats, want %d", len(saved), want)
	}
	for _, s := range states {
		if saved == nil {
			clear(s)
			continue
		}
		saved = saved[copy(s, saved):]
	}
	return nil
}
