package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ganglion/gpu/device"
	"ganglion/gpu/ops"
)

// The tasks of a child: args of Child.
const (
	taskList = "list" // DRIVER
	taskTest = "test" // DRIVER ID
	taskOpen = "open" // DRIVER ID
	taskTry  = "try"  // DRIVER ID ABILITY
)

// message is one line that a child writes; exactly one field is set.
type message struct {
	Device *device.Info `json:"device,omitempty"` // task list
	Opened *opened      `json:"opened,omitempty"` // task test: the device could be opened
	Answer *Answer      `json:"answer,omitempty"` // task test
	Step   string       `json:"step,omitempty"`   // task try: what was done
	Trial  *Trial       `json:"trial,omitempty"`  // task try
	Error  string       `json:"error,omitempty"`  // the end: the task could not be done
	Absent bool         `json:"absent,omitempty"` // beside Error: there is no such driver on the machine
	Done   bool         `json:"done,omitempty"`   // the end: all is said
}

// opened is what only an opened device tells.
type opened struct {
	Info   device.Info
	Limits device.Limits
	Caps   device.Caps
}

// Child does one task of a probe and writes what it finds, a line of JSON for each
// message, as soon as it knows it: a driver may end the process at any call. It runs in a
// process of its own.
func Child(w io.Writer, drivers []Driver, args []string) error {
	limitChild()
	enc := json.NewEncoder(w)
	var failed error
	say := func(m message) {
		if err := enc.Encode(m); err != nil && failed == nil {
			failed = err
		}
	}
	if err := childTask(say, drivers, args); err != nil {
		say(message{Error: err.Error(), Absent: errors.Is(err, device.ErrUnsupported)})
	} else {
		say(message{Done: true})
	}
	return failed
}

func childTask(say func(message), drivers []Driver, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("probe: child: %d arguments", len(args))
	}
	at := slices.IndexFunc(drivers, func(d Driver) bool { return d.Name == args[1] })
	switch {
	case at < 0:
		return fmt.Errorf("probe: child: no driver %q", args[1])
	case args[0] == taskList && len(args) == 2:
		infos, err := drivers[at].List()
		for _, i := range infos {
			say(message{Device: &i})
		}
		return err
	case args[0] == taskTest && len(args) == 3:
		return testDevice(say, drivers[at], args[2])
	case args[0] == taskOpen && len(args) == 3:
		return openDevice(drivers[at], args[2])
	case args[0] == taskTry && len(args) == 4:
		return tryDevice(say, drivers[at], args[2], device.Ability(args[3]))
	}
	return fmt.Errorf("probe: child: %q is no task", args)
}

// testDevice opens a device and asks all questions in both modes.
func testDevice(say func(message), driver Driver, id string) error {
	d, err := driver.Open(id)
	if err != nil {
		return err
	}
	say(message{Opened: &opened{d.Info(), d.Limits(), d.Caps()}})
	b := driver.Backend(d, Use{})
	coarse := 0.0
	if driver.Bytes {
		coarse = coarseBound
	}
	put(b, []ops.Numerics{ops.Fast, ops.Exact}, coarse, func(a Answer) { say(message{Answer: &a}) })
	return b.Close()
}

// openDevice opens a device and has it keep a few bytes.
func openDevice(driver Driver, id string) error {
	d, err := driver.Open(id)
	if err != nil {
		return err
	}
	sent := []byte("what a device keeps\n")
	got := make([]byte, len(sent))
	b, err := d.NewBuffer(4<<10, device.Scratch)
	if err == nil {
		err = b.Write(1<<10, sent)
	}
	if err == nil {
		err = b.Read(1<<10, got)
	}
	if err == nil && !bytes.Equal(got, sent) {
		err = errors.New("it does not keep what is written to it")
	}
	return errors.Join(err, d.Close())
}
