package host

import (
	"errors"

	"ganglion/plugins/abi"
)

// program is a gg_run that goes from one event to the next. It runs on a goroutine of its
// own, and only while the goroutine of the instance waits for it, so both may use the
// instance's fields. The goroutine ends with the program, or in end.
type program struct {
	events  chan abi.Hook
	answers chan answer
	first   abi.Hook // the event that the first call of next returns; 0: it was called
	done    bool     // gg_run returned or failed
	ended   bool     // it is being unwound
}

// answer is what the program made of an event.
type answer struct {
	result int32
	err    *Error
	done   bool
}

// errEnded unwinds a program that waits for an event that will not come.
var errEnded = errors.New("host: the request is over")

// resume hands an event to the program and waits for its answer.
func (i *Instance) resume(h abi.Hook) (int32, *Error) {
	if i.program == nil {
		i.program = &program{events: make(chan abi.Hook), answers: make(chan answer)}
		go i.run(i.program)
	}
	r := i.program
	i.begin(h)
	i.fuel(i.p.Fuel(h))
	i.rested = i.p.Fuel(h)
	release := func() {}
	if i.until != nil {
		release = i.until.watch(i)
	}
	r.events <- h
	a := <-r.answers
	release()
	i.hook, r.done = 0, a.done
	return a.result, a.err
}

// run is the program's goroutine. It begins when the first event is there.
func (i *Instance) run(r *program) {
	defer close(r.answers)
	r.first = <-r.events
	stack := [1]uint64{uint64(i.at)}
	err := i.g.mod.ExportedFunction("gg_run").CallWithStack(i.ctx, stack[:])
	if r.ended {
		return
	}
	i.endLines()
	a := answer{result: int32(uint32(stack[0])), done: true}
	switch {
	case err != nil:
		a.err = i.judge(err, i.p.Fuel(i.hook))
	case i.left() < 0:
		a.err = i.fail(CodeFuel, "used all of %d", i.p.Fuel(i.hook))
	}
	r.answers <- a
}

// next is the host function: it answers the event at hand and waits for another.
func (i *Instance) next(actions int32) int32 {
	r := i.program
	if r == nil || i.hook != abi.HookPlan && i.hook != abi.HookLogits && i.hook != abi.HookAccept {
		return abi.NotPermitted
	}
	if h := r.first; h != 0 {
		r.first = 0
		return int32(h)
	}
	i.endLines()
	r.answers <- answer{result: actions}
	h, ok := <-r.events
	if !ok {
		r.ended = true
		panic(errEnded)
	}
	return int32(h)
}

// end lets the goroutine end and waits for it. It is called while the program waits for
// an event or after it is done.
func (r *program) end() {
	if !r.done {
		r.done = true
		close(r.events)
		<-r.answers // closed by run
	}
}
