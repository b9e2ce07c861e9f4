package appliance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

func TestMain(m *testing.M) {
	decoderDouble() // this program is its own child there
	goleak.VerifyTestMain(m)
}

// bench is a service over a double, with its log.
type bench struct {
	*appliance.Service
	model *appliancetest.Scripted
	log   *appliancetest.Recorder
}

// serve starts a service over a model; it is closed with the test, and the rules of
// the recorder are checked.
func serve(t testing.TB, m *appliancetest.Scripted, cfg appliance.Config) *bench {
	t.Helper()
	return serveAs(t, m, m, cfg)
}

// serveAs is serve with a model that stands around the double. No seed is drawn unless the
// configuration says how.
func serveAs(t testing.TB, used appliance.Model, m *appliancetest.Scripted, cfg appliance.Config) *bench {
	t.Helper()
	log := &appliancetest.Recorder{}
	cfg.Recorder = log
	if cfg.Rand == nil {
		cfg.Rand = appliancetest.Seed
	}
	s, err := appliance.NewService(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Use(used)
	t.Cleanup(func() {
		if err := s.Close(within(t)); err != nil {
			t.Errorf("close: %v", err)
		}
		if !m.Closed() {
			t.Error("the model was not closed")
		}
		if n := m.Busy(); n != 0 {
			t.Errorf("%d slots were not released", n)
		}
		for _, f := range log.Faults() {
			t.Error("recorder: " + f)
		}
		if b, e := len(log.Begun()), len(log.Ended()); b != e {
			t.Errorf("%d records begun, %d ended", b, e)
		}
	})
	return &bench{Service: s, model: m, log: log}
}

// patience ends a test which hangs: far beyond what a loaded machine needs.
const patience = 3 * time.Minute

// until waits for what another goroutine brings about without a signal of its own.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for ctx := within(t); !ok(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// within returns a context that ends a test which hangs.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func ptr[T any](v T) *T { return &v }

// greedy returns a request at temperature 0.
func greedy(prompt string, limit int64) *appliance.Request {
	return &appliance.Request{ID: appliance.NewID(), Prompt: prompt, Temperature: ptr(0.0), MaxTokens: &limit}
}

// answer is one completion, read chunk by chunk and as a whole.
type answer struct {
	*appliance.Result
	chunks []appliance.Chunk
}

// complete runs a request to its end and checks what holds for every completion:
// chunks join to the result, only the last has a finish reason, none before it is
// empty, and the tokens' shares join to the text.
func (b *bench) complete(t testing.TB, r *appliance.Request) answer {
	t.Helper()
	a, err := b.try(t, r)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return a
}

func (b *bench) try(t testing.TB, r *appliance.Request) (answer, error) {
	ctx := within(t)
	c, err := b.Start(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	var a answer
	for {
		chunk, err := c.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return a, err
		}
		a.chunks = append(a.chunks, chunk)
	}
	if a.Result, err = c.Wait(ctx); err != nil {
		return a, err
	}
	return a, a.consistent()
}

func (a answer) consistent() error {
	text, tokens, shares := "", 0, ""
	for i, c := range a.chunks {
		if last := i == len(a.chunks)-1; last != (c.Finish != "") {
			return fmt.Errorf("chunk %d of %d has finish reason %q", i, len(a.chunks), c.Finish)
		} else if !last && c.Text == "" {
			return fmt.Errorf("chunk %d of %d is empty", i, len(a.chunks))
		}
		text += c.Text
		for _, tok := range c.Tokens {
			if tok.ID != a.Tokens[tokens].ID || tok.Text != a.Tokens[tokens].Text {
				return fmt.Errorf("token %d: chunk has %+v, result %+v", tokens, tok, a.Tokens[tokens])
			}
			if tok.Offset != len(shares) {
				return fmt.Errorf("token %d: offset %d, want %d", tokens, tok.Offset, len(shares))
			}
			if tok.Logprob > 0 || tok.Logprob < -1e5 || tok.Logprob != tok.Logprob {
				return fmt.Errorf("token %d: log-probability %g", tokens, tok.Logprob)
			}
			shares += tok.Text
			tokens++
		}
	}
	switch {
	case text != a.Text:
		return fmt.Errorf("chunks join to %q, the result is %q", text, a.Text)
	case shares != a.Text:
		return fmt.Errorf("the tokens' shares join to %q, the result is %q", shares, a.Text)
	case tokens != len(a.Tokens) || tokens != a.Usage.CompletionTokens:
		return fmt.Errorf("%d tokens in chunks, %d in the result, usage %d", tokens, len(a.Tokens), a.Usage.CompletionTokens)
	case a.chunks[len(a.chunks)-1].Finish != a.Finish:
		return fmt.Errorf("last chunk says %q, the result %q", a.chunks[len(a.chunks)-1].Finish, a.Finish)
	}
	return nil
}

// texts returns the chunks' texts.
func (a answer) texts() []string {
	var out []string
	for _, c := range a.chunks {
		out = append(out, c.Text)
	}
	return out
}

// refuse starts a request that must be refused and checks code and field.
func (b *bench) refuse(t testing.TB, r *appliance.Request, code appliance.Code, param string) *appliance.Error {
	t.Helper()
	before := len(b.log.Begun())
	c, err := b.Start(within(t), r)
	if err == nil {
		c.Close()
		t.Fatalf("accepted, want %s", code)
	}
	var e *appliance.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *appliance.Error", err)
	}
	if e.Code != code || e.Param != param {
		t.Fatalf("refused with %s for %q (%s), want %s for %q", e.Code, e.Param, e.Message, code, param)
	}
	if n := len(b.log.Begun()); n != before {
		t.Errorf("a refused request left %d records", n-before)
	}
	return e
}

// pieces returns a service over a scripted model.
func pieces(t testing.TB, p ...string) *bench {
	t.Helper()
	return serve(t, appliancetest.NewScripted(appliancetest.Script{Pieces: p}, appliancetest.Options{}), appliance.Config{})
}
