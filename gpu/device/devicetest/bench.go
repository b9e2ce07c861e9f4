package devicetest

import (
	"fmt"
	"testing"
	"time"

	"ganglion/gpu/device"
)

// Bench measures a driver: what a submission and a command cost, and the rate at which a
// plain compute shader reads memory, which other kernels are compared with. open gives a
// new device, as for Run.
func Bench(b *testing.B, open func(t testing.TB) device.Device) {
	b.Run("submit", func(b *testing.B) {
		e := newEnv(b, open)
		e.submissions(b, 0, func(int) device.Command { return device.Command{} })
	})
	for _, barrier := range []bool{false, true} {
		b.Run(fmt.Sprintf("commands/barrier=%t", barrier), func(b *testing.B) {
			e := newEnv(b, open)
			k := e.kernel("shift")
			x, y := e.buffer(256, device.Scratch), e.buffer(256, device.Scratch)
			const n = 1000
			e.submissions(b, n, func(int) device.Command {
				c := command(k, 1, bind(x, y), 1, 0)
				c.Barrier = barrier
				return c
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/command")
		})
	}
	for _, name := range []string{"read_words", "read_texels"} {
		for _, wg := range []uint32{32, 64, 128, 256} {
			for _, loads := range []uint32{4, 16, 64} {
				b.Run(fmt.Sprintf("%s/wg=%d/loads=%d", name, wg, loads), func(b *testing.B) {
					newEnv(b, open).reads(b, name, wg, loads)
				})
			}
		}
	}
}

// submissions runs a program of n commands again and again.
func (e *env) submissions(b *testing.B, n int, command func(i int) device.Command) {
	b.Helper()
	commands := make([]device.Command, n)
	for i := range commands {
		commands[i] = command(i)
	}
	p := e.program(device.ProgramOptions{}, commands...)
	e.do(p)
	for b.Loop() {
		e.do(p)
	}
}

// reads reads 256 MiB, in windows that a binding may have.
func (e *env) reads(b *testing.B, name string, wg, loads uint32) {
	b.Helper()
	const total, window = 256 << 20, 64 << 20
	l := e.Limits()
	if name == "read_texels" && l.Texels < window/16 {
		b.Skipf("texel buffers of %d texels", l.Texels)
	}
	k := e.kernel(name, wg, loads)
	groups := window / 16 / int(wg*loads)
	if int64(groups) > l.Groups[0] {
		b.Skipf("%d workgroups, at most %d", groups, l.Groups[0])
	}
	out := e.buffer(4*int64(groups)*int64(wg), device.Scratch)
	page := bytesOf(noise(1<<18, 1))
	var commands []device.Command
	for range total / window {
		w := e.buffer(window, device.Weights)
		for at := 0; at < window; at += len(page) {
			e.must(w.Write(int64(at), page))
		}
		commands = append(commands, command(k, groups, bind(w, out)))
	}
	p := e.program(device.ProgramOptions{}, commands...)
	e.do(p)
	b.SetBytes(total)
	best := time.Hour
	for b.Loop() {
		began := time.Now()
		e.do(p)
		best = min(best, time.Since(began))
	}
	b.ReportMetric(total/best.Seconds()/1e9, "best-GB/s")
}
