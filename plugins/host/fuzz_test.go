package host

import (
	"errors"
	"slices"
	"testing"

	"ganglion/plugins/abi"
)

// FuzzHostFunctions calls host functions with any arguments: none may panic but to end a
// call for its fuel, and none may make memory move.
func FuzzHostFunctions(f *testing.F) {
	const page = memoryPage
	all := slices.Concat(hostFunctions, wasiFunctions())
	for n := range all {
		f.Add(byte(n), byte(abi.HookPlan), uint32(0), uint32(0), uint32(0), uint32(0), uint32(0))
		f.Add(byte(n), byte(abi.HookOpen), uint32(page-1), uint32(2), uint32(page-1), uint32(2), uint32(1))
		f.Add(byte(n), byte(abi.HookPrompt), uint32(0xFFFFFFFF), uint32(0xFFFFFFFF), uint32(0xFFFFFFFF), uint32(0xFFFFFFFF), uint32(0xFFFFFFFF))
	}
	p := load(f, newRuntime(f, Options{}), testGuest(ordinary+`,"license":"any"`))
	f.Fuzz(func(t *testing.T, which, hook byte, a, b, c, d, e uint32) {
		i, err := p.Open(t.Context(), opening(0))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = i.Close() }()
		size := i.g.memory.Size()
		i.fuel(1 << 40)
		i.hook = abi.Hook(hook % abi.Hooks)
		stack := []uint64{uint64(a), uint64(b), uint64(c), uint64(d), uint64(e), 0, 0, 0, 0}
		func() {
			defer func() {
				if v := recover(); v != nil {
					if thrown, ok := v.(error); !ok || !errors.As(thrown, new(*Error)) {
						panic(v)
					}
				}
			}()
			all[int(which)%len(all)].call(i, stack)
		}()
		if i.g.memory.Size() != size {
			t.Error("memory moved")
		}
	})
}
