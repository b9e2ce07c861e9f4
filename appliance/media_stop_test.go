package appliance_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/cpu"
	"ganglion/gpu/cputime"
	"ganglion/gpu/encoder"
	"ganglion/gpu/encoder/encodertest"
	"ganglion/gpu/engine"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/ops"
)

// towered is a service over a model of noise with a true encoder, whose tower takes more than
// a second of processor time for a picture.
func towered(t *testing.T) *bench {
	t.Helper()
	path := filepath.Join(t.TempDir(), "siglip.gguf")
	if err := gguftest.Write(path, encodertest.SigLIP(2, appliancetest.EncoderWidth)); err != nil {
		t.Fatal(err)
	}
	back, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { back.Close() })
	e, err := encoder.Open(context.Background(), encoder.Config{Path: path, Backend: back, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	m := appliancetest.NewHashed(appliancetest.Options{Context: 1024})
	return serveAs(t, appliance.WithEncoder(m, appliance.FromEncoder(e, "fast")), m, appliance.Config{})
}

// worked waits until the process has used so much processor time.
func worked(d time.Duration) {
	for from := cputime.Used(); cputime.Used()-from < d; {
		time.Sleep(time.Millisecond)
	}
}

// A true encoder stops in the middle of a picture once the request is gone, and once the
// service closes in a hurry: the tower's work behind that is a small part of a picture's.
func TestTowersStopWithTheirRequest(t *testing.T) {
	b := towered(t)
	from := cputime.Used()
	b.complete(t, showing("x", 4, picture(0, pngOf(448, 448, 1))))
	whole := cputime.Used() - from
	limit := max(whole/8, 100*time.Millisecond)
	if whole < 4*limit {
		t.Fatalf("a picture takes %v: it shows nothing", whole)
	}
	start := func(ctx context.Context, seed int) (code appliance.Code) {
		_, err := b.Start(ctx, showing("x", 4, picture(0, pngOf(448, 448, seed))))
		var e *appliance.Error
		if errors.As(err, &e) {
			code = e.Code
		}
		return code
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		if code := start(ctx, 2); code != appliance.CodeCancelled {
			t.Errorf("a request that was cancelled while its picture was encoded gave %q", code)
		}
	})
	worked(whole / 4)
	cancel()
	gone := cputime.Used()
	wg.Wait()
	b.complete(t, greedy("the encoder's turn is over", 4))
	if more := cputime.Used() - gone; more > limit {
		t.Errorf("the encoder computed for %v after the request was gone, of %v", more, whole)
	}
	wg.Go(func() {
		if code := start(context.Background(), 3); code != appliance.CodeCancelled {
			t.Errorf("a picture that was encoded while the service was closed gave %q", code)
		}
	})
	worked(whole / 4)
	hurry, stop := context.WithCancel(context.Background())
	stop()
	gone = cputime.Used()
	b.Close(hurry)
	wg.Wait()
	if more := cputime.Used() - gone; more > limit {
		t.Errorf("the encoder computed for %v after the service was closed, of %v", more, whole)
	}
}

// unending is a model whose prompts take forever, unless they are stopped.
type unending struct {
	*appliancetest.Scripted
	stop  *ops.Stop
	began chan *ops.Stop
}

func (m *unending) StopWith(s *ops.Stop) { m.stop = s }

func (m *unending) Run(rows []engine.Row) ([]engine.Head, error) {
	stop := m.stop
	m.stop = nil
	if len(rows) < 8 || stop == nil {
		return m.Scripted.Run(rows)
	}
	m.began <- stop
	for !stop.Stopped() {
		time.Sleep(time.Millisecond)
	}
	return nil, fmt.Errorf("test: %w", ops.ErrStopped)
}

// A batch that reads prompts ends once all its requests are gone, and not before the last is.
func TestForsakenBatchesStop(t *testing.T) {
	scripted := appliancetest.NewHashed(appliancetest.Options{Slots: 3})
	m := &unending{Scripted: scripted, began: make(chan *ops.Stop)}
	b := serveAs(t, m, scripted, appliance.Config{})
	start := func() *appliance.Completion {
		t.Helper()
		c, err := b.Start(context.Background(), greedy(strings.Repeat("prompt ", 10), 4))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	wait := func(c *appliance.Completion) {
		t.Helper()
		_, err := c.Wait(within(t))
		var e *appliance.Error
		if !errors.As(err, &e) || e.Code != appliance.CodeCancelled {
			t.Errorf("%v", err)
		}
	}
	alone := start()
	<-m.began
	one, other := start(), start()
	alone.Close()
	wait(alone)
	together := <-m.began
	one.Close()
	if time.Sleep(20 * time.Millisecond); together.Stopped() {
		t.Error("a batch was stopped that a request waits for")
	}
	other.Close()
	wait(one)
	wait(other)
	b.complete(t, greedy("one", 4))
}
