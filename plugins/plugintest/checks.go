package plugintest

import (
	"errors"
	"fmt"
	"math"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
)

// ordinary is a request without anything special in it.
func (k *kit) ordinary(steps int) *scene {
	return &scene{name: "an ordinary text", vocab: k.small(), seed: 1, prompt: 20, steps: steps, temperature: 0.8}
}

// determinism is check 3.
func (k *kit) determinism() (err error) {
	if k.compiled.Interpreter() {
		return skip("this machine has no compiler for guests")
	}
	if k.slow, err = k.interpreted.Load(k.ctx, k.withoutTests()); err != nil {
		k.slow = nil
		return fmt.Errorf("interpreted: %w", err)
	}
	for _, temperature := range []float64{0, 0.8} {
		sc := k.ordinary(48)
		sc.temperature = temperature
		a := k.sessionOf(sc)
		b := k.sessionOf(sc)
		b.plugin, b.interpreted = k.slow, true
		a.hashed, b.hashed = true, true
		if err := errors.Join(a.play(), b.play()); err != nil {
			return err
		}
		if err := compare("compiled", a.calls, "interpreted", b.calls); err != nil {
			return fmt.Errorf("temperature %g: %w", temperature, err)
		}
	}
	return nil
}

func (k *kit) withoutTests() []byte {
	b, err := dropTests(k.file)
	if err != nil {
		return k.file // check 1 read it
	}
	return b
}

// compare finds the first call that differs.
func compare(nameA string, a []call, nameB string, b []call) error {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		at := fmt.Sprintf("call %d, gg_%s at step %d", i+1, x.hook, x.step)
		switch {
		case x.same(y):
		case x.hook != y.hook || x.step != y.step:
			return fmt.Errorf("%s: %s, but %s gg_%s at step %d", at, nameA, nameB, y.hook, y.step)
		case x.failed != y.failed || x.actions != y.actions:
			return fmt.Errorf("%s: %s %s, %s %s", at, nameA, x.actions, nameB, y.actions)
		case x.outputs != y.outputs:
			return fmt.Errorf("%s: %s and %s answer otherwise (%s)", at, nameA, nameB, x.actions)
		case x.fuel != y.fuel:
			return fmt.Errorf("%s: fuel %d %s, %d %s", at, x.fuel, nameA, y.fuel, nameB)
		case x.memory != y.memory:
			return fmt.Errorf("%s: the memory differs between %s and %s", at, nameA, nameB)
		}
	}
	if len(a) != len(b) {
		return fmt.Errorf("%d calls %s, %d %s", len(a), nameA, len(b), nameB)
	}
	return nil
}

// corpora is check 4.
func (k *kit) corpora() error {
	for _, size := range k.o.Vocabularies {
		if size < k.m.MinVocab {
			k.note("%d tokens: smaller than the manifest allows", size)
			continue
		}
		for _, temperature := range []float64{0.8, 0} {
			s := k.sessionOf(&scene{name: fmt.Sprintf("%d tokens, temperature %g", size, temperature), vocab: k.vocabulary(size), seed: uint32(size), prompt: 40, steps: 12, temperature: temperature})
			if err := s.play(); err != nil {
				return err
			}
		}
		for _, e := range edges {
			sc := &scene{name: fmt.Sprintf("%d tokens, %s", size, e.name), vocab: k.vocabulary(size), seed: 7, prompt: e.prompt, steps: min(e.max, 3), max: e.max, temperature: 1, row: e.row}
			err := k.sessionOf(sc).play()
			if e.scarce && k.mayEmpty(err) {
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// mayEmpty tells whether an error is one that a plugin which bans tokens cannot avoid
// where few are left.
func (k *kit) mayEmpty(err error) bool {
	var e *pipeline.Error
	return errors.As(err, &e) && e.Code == "empty" && (k.m.Slot == abi.SlotConstrain || k.m.Slot == abi.SlotBias)
}

// restore is check 5: (a) the same request twice, the second in used instances; (b) tokens
// are taken back, and come again; (c) a new instance that reads the text.
func (k *kit) restore() error {
	const steps = 64
	plain := k.sessionOf(k.ordinary(steps))
	again := k.sessionOf(k.ordinary(steps))
	plain.hashed, again.hashed = true, true
	if err := errors.Join(plain.play(), again.play()); err != nil {
		return err
	}
	if err := compare("the first time", plain.calls, "the second", again.calls); err != nil {
		return fmt.Errorf("the same request twice: %w", err)
	}
	if err := k.rewound(plain, steps); err != nil {
		return fmt.Errorf("tokens taken back (draft: %s): %w", k.m.Draft, err)
	}
	if err := k.replayed(plain, steps); err != nil {
		return fmt.Errorf("a new instance that read the text: %w", err)
	}
	return nil
}

// rewound takes tokens back at some steps. What comes after must be as in the plain run. A
// plugin that takes tokens back itself is put back too where another one does so: what it
// learned since it learns again.
func (k *kit) rewound(plain *session, steps int) error {
	if k.m.View.Holdback > 0 && plain.own == 0 {
		k.note("the plugin may take tokens back, and did not: name a configuration with which it does")
	} else if plain.own > 0 {
		k.note("the plugin took tokens back itself %d times", plain.own)
	}
	sc := k.ordinary(steps)
	sc.rewinds = func(step int) int {
		if step%16 == 12 {
			return 5
		}
		return 0
	}
	s := k.sessionOf(sc)
	s.hashed = k.m.Draft == abi.DraftSnapshot && !s.program
	if err := s.play(); err != nil {
		return err
	}
	if k.m.Draft != abi.DraftSnapshot && k.tokensAlone() {
		s.hashed = false
	} else if k.m.Draft != abi.DraftSnapshot {
		k.note("what the plugin learns of logits is in no replay: nothing is compared after tokens were taken back")
		return nil
	}
	return sameDecisions(plain, s)
}

// replayed breaks one call; the plugin is opened anew and reads the text so far.
func (k *kit) replayed(plain *session, steps int) error {
	if !k.tokensAlone() {
		k.note("the plugin looks at logits: what it learns of them no replay can give back, so none is compared")
		return nil
	}
	sc := k.ordinary(steps)
	sc.policy = pipeline.Restart
	s := k.sessionOf(sc)
	broken := false
	s.breakAt = func(h abi.Hook, step int) bool {
		if broken || step < 40 || h == abi.HookAccept {
			return false
		}
		broken = true
		return true
	}
	if err := s.play(); err != nil {
		return err
	}
	return sameDecisions(plain, s)
}

// tokensAlone tells whether all that the plugin knows of the past are tokens.
func (k *kit) tokensAlone() bool {
	return !k.plugin.Has(abi.HookLogits) && !k.plugin.Has(abi.HookChoose)
}

// sameDecisions compares what was decided at each step the last time it was, and the
// memory where both kept hashes.
func sameDecisions(a, b *session) error {
	for i, id := range a.tokens {
		if i >= len(b.tokens) || b.tokens[i] != id {
			return fmt.Errorf("token %d is another one than without", i)
		}
	}
	if !a.hashed || !b.hashed {
		return nil
	}
	want := lastCalls(a.calls)
	for at, c := range lastCalls(b.calls) {
		if w, ok := want[at]; ok && !c.same(w) && at.hook != abi.HookText && at.hook != abi.HookEnd {
			return compare("without", []call{w}, "with", []call{c})
		}
	}
	return nil
}

type moment struct {
	hook abi.Hook
	step int
}

// lastCalls are the calls of each hook at each step, the last ones.
func lastCalls(calls []call) map[moment]call {
	m := make(map[moment]call, len(calls))
	for _, c := range calls {
		m[moment{c.hook, c.step}] = c
	}
	return m
}

// flat is check 6. What grows in the first thousandth of the text is preparation; texts
// that the plugin ends early are followed by more of them.
func (k *kit) flat() error {
	sc := k.ordinary(k.o.Tokens)
	sc.name, sc.rows, sc.vocab = fmt.Sprintf("%d tokens", k.o.Tokens), 16, k.vocabulary(max(1024, k.m.MinVocab))
	made, texts := 0, 0
	for made < k.o.Tokens && texts < 64 {
		s := k.sessionOf(sc)
		if err := s.long(); err != nil {
			return err
		}
		made += max(len(s.tokens), 1)
		texts++
		sc.seed++
		if err := k.ctx.Err(); err != nil {
			return err
		}
	}
	k.note("%d tokens in %d texts", made, texts)
	return nil
}

// long plays a session and watches the size of the state.
func (s *session) long() error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.pipe.Close()
	warm := s.sc.steps / 10
	size := 0
	for len(s.tokens) < s.sc.steps {
		n := len(s.tokens)
		s.sized = n == warm || n%1000 == 999 || n == s.sc.steps-1
		s.pages = 0
		done, err := s.step()
		if err != nil {
			return fmt.Errorf("%s: step %d: %w", s.sc.name, n, err)
		}
		s.calls = s.calls[:0]
		switch {
		case n == warm:
			size = s.pages
		case n > warm && s.pages > size && size > 0:
			return fmt.Errorf("%s: the memory grew from %d KiB after %d tokens to %d KiB after %d", s.sc.name, size>>10, warm, s.pages>>10, n)
		}
		if done {
			break
		}
	}
	s.pipe.End(abi.StopStop)
	return nil
}

// golden is check 7: loading runs the tests that the file carries.
func (k *kit) golden() error {
	bare := k.withoutTests()
	if len(bare) == len(k.file) {
		return skip("the file carries no tests (section %s)", abi.SectionTests)
	}
	p, err := k.compiled.Load(k.ctx, k.file)
	if err != nil {
		return err
	}
	p.Close()
	return nil
}

// pointers is check 8: the plugin writes where it may, and nowhere else in its frame.
func (k *kit) pointers() error {
	for _, e := range append([]edge{{name: "an ordinary text", prompt: 20, max: 32}}, edges...) {
		sc := &scene{name: e.name, vocab: k.small(), seed: 3, prompt: e.prompt, steps: min(e.max, 32), max: e.max, temperature: 0.9, row: e.row}
		s := k.sessionOf(sc)
		s.audit = &audit{}
		if err := s.play(); err != nil && !(e.scarce && k.mayEmpty(err)) {
			return err
		}
	}
	return nil
}

// chains is check 9: beside each of the other plugins, which see what it leaves and leave
// what it sees.
func (k *kit) chains() error {
	if len(k.others) == 0 {
		return skip("there are no other plugins")
	}
	run := 0
	for _, o := range k.others {
		m := o.plugin.Manifest()
		if m.Name == k.m.Name || o.config == nil || m.MinVocab > k.small().Size() || o.plugin.Has(abi.HookChoose) && k.plugin.Has(abi.HookChoose) {
			continue
		}
		sc := k.ordinary(24)
		sc.name, sc.others = "beside "+m.Name, []other{o}
		err := k.sessionOf(sc).play()
		if why := k.contradict(err, m); why != "" {
			k.note("%s: %s", sc.name, why)
			err = nil
		}
		if err != nil {
			return err
		}
		run++
	}
	k.note("beside %d plugins", run)
	return nil
}

// contradict says how two plugins that both keep the contract fail together: one may want
// what the other does not let come.
func (k *kit) contradict(err error, other *abi.Manifest) string {
	var e *pipeline.Error
	if !errors.As(err, &e) {
		return ""
	}
	bans := func(m *abi.Manifest) bool { return m.Slot == abi.SlotConstrain || m.Slot == abi.SlotBias }
	switch {
	case e.Code == "empty" && (bans(k.m) || bans(other)):
		return "together they leave no token"
	case e.Code == "livelock" && (bans(k.m) || bans(other)):
		return "one takes back what the other wants"
	}
	return ""
}

// maxStall is the longest that a call may keep other streams from going on, by the clock
// and in fuel, of which a processor burns some ten million a millisecond.
const (
	maxStallMS   = 5
	maxStallFuel = 30_000_000
)

// figures is check 10: what each hook costs, and that no call of a step stalls others.
func (k *kit) figures() error {
	sc := k.ordinary(400)
	sc.name, sc.rows = "an ordinary text, for its figures", 16
	var runs [][]call
	for range 3 {
		s := k.sessionOf(sc)
		if err := s.play(); err != nil {
			return err
		}
		runs = append(runs, s.calls)
	}
	k.hooks = figuresOf(runs)
	for h := abi.HookPlan; h < abi.HookEnd; h++ {
		f, ok := k.hooks[h.String()]
		if ok && (f.MaxFuel > maxStallFuel || f.MaxUS > maxStallMS*1000 && !k.compiled.Interpreter()) {
			return fmt.Errorf("a call of gg_%s took %.1f ms and %d fuel: more than %d ms or %d million fuel stalls the streams of others", h, f.MaxUS/1000, f.MaxFuel, maxStallMS, maxStallFuel/1_000_000)
		}
	}
	if len(k.hooks) < 2 { // opening alone
		return errors.New("no hook was called")
	}
	return nil
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }
