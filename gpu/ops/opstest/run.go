// Package opstest is the conformance suite that every backend of gpu/ops passes.
//
// [Run] executes one small plan per operation and shape through the public
// interface alone: inputs come in as Batch.Embeds, outputs go out as whole rows of
// logits. Each plan is run in several layouts (own buffers, inside a wider buffer
// whose other columns must stay as they were, inside one filled with NaN, in place)
// and several schedules (all rows at once, one by one, in pieces beside other
// sequences, with one and two threads), and
//
//   - every result is compared with a definition in float64 that is written here and
//     shares no code with gpu/ops/ref; the bounds stand in tolerance.go;
//   - all schedules and layouts must give the same bits, in fast mode too;
//   - in exact mode the bits must be those of gpu/ops/ref.
//
// Checks are functions that return errors, so that the suite's own tests can show
// that each kind of mistake is found.
package opstest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ganglion/gpu/ops"
)

// Option changes what a run expects of a backend.
type Option func(*config)

type config struct {
	unsupported []string
	large       bool
	only        []string // beginnings of the names of checks; empty: all
	part, parts int      // of those every parts-th check, from part on; parts 0: all
	kvInTurn    bool     // one type of cache for a case
}

// Unsupported names checks that the backend may refuse with ErrUnsupported, by
// operation ("mamba1") or by a prefix of the check's name ("matmul/IQ1_S"). A name
// that is listed but never refused is a failure, so that the list stays true.
func Unsupported(names ...string) Option {
	return func(c *config) { c.unsupported = append(c.unsupported, names...) }
}

// Large also runs the matrices above 128 MiB; the environment variable
// GANGLION_OPSTEST_LARGE does the same.
func Large() Option { return func(c *config) { c.large = true } }

// Part runs a share of the suite: every n-th check, from number i on, where checks that a
// backend needs the same kernels for are one. Backends that share their code but for a
// dialect can divide the suite between them, and compile no kernel twice for it.
func Part(i, n int) Option { return func(c *config) { c.part, c.parts = i, n } }

// KVInTurn runs each case of attention with one type of cache, in turn, in place of all: for
// backends on which compiling kernels takes far longer than running them.
func KVInTurn() Option { return func(c *config) { c.kvInTurn = true } }

// Only runs the checks whose names begin with one of those that are given, for tests of a
// backend's special cases ("matmul/").
func Only(names ...string) Option { return func(c *config) { c.only = names } }

// A check is one test of a backend.
type check struct {
	name    string
	run     func(ops.Backend) error
	kernels string // what its kernels are compiled for, the same in checks that share them; empty: nothing is known
}

// share is the checks of a part: those of the same kernels are in the same one.
func (c config) share(checks []check) []check {
	if c.parts == 0 {
		return checks
	}
	numbers := map[string]int{}
	return slices.DeleteFunc(checks, func(k check) bool {
		key := cmp.Or(k.kernels, k.name)
		if _, known := numbers[key]; !known {
			numbers[key] = len(numbers)
		}
		return numbers[key]%c.parts != c.part
	})
}

// Run runs the suite. open returns a backend for each check, closed by the suite.
func Run(t *testing.T, open func(t *testing.T) ops.Backend, options ...Option) {
	c := config{large: os.Getenv("GANGLION_OPSTEST_LARGE") != ""}
	for _, o := range options {
		o(&c)
	}
	refused := map[string]bool{}
	for _, check := range c.share(suite(c)) {
		t.Run(check.name, func(t *testing.T) {
			b := open(t)
			defer b.Close()
			err := check.run(b)
			if name, ok := c.refusal(check.name, err); ok {
				refused[name] = true
				t.Logf("declared as unsupported: %v", err)
				return
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := c.unused(refused); err != nil && !t.Failed() {
		t.Error(err)
	}
}

// refusal gives the declared name that covers a check which was refused.
func (c config) refusal(name string, err error) (declared string, ok bool) {
	if !errors.Is(err, ops.ErrUnsupported) {
		return "", false
	}
	for _, u := range c.unsupported {
		if strings.HasPrefix(name+"/", u+"/") {
			return u, true
		}
	}
	return "", false
}

// unused reports declared names that nothing was refused for.
func (c config) unused(refused map[string]bool) error {
	if c.parts > 0 {
		return nil // another part may have the check
	}
	left := slices.DeleteFunc(slices.Clone(c.unsupported), func(name string) bool { return refused[name] })
	if len(left) > 0 {
		return fmt.Errorf("declared unsupported but never refused: %v", left)
	}
	return nil
}

// suite lists all checks.
func suite(c config) []check {
	var checks []check
	for _, cases := range [][]testCase{
		matMulCases(), elementwiseCases(), normCases(), ropeCases(), attentionCases(), moeCases(), lowRankCases(), recurrentCases(),
	} {
		if c.kvInTurn {
			cases = inTurn(cases)
		}
		for _, k := range cases {
			checks = append(checks, check{k.name, k.check, k.kernels})
		}
	}
	if c.large {
		checks = append(checks, check{name: "matmul/large", run: checkLarge})
	}
	checks = append(checks, embedChecks()...)
	checks = append(checks, gatherChecks()...)
	checks = append(checks, lowRankChecks()...)
	checks = append(checks, headChecks()...)
	checks = append(checks, modelChecks()...)
	checks = append(checks, runtimeChecks()...)
	return slices.DeleteFunc(checks, func(k check) bool { return len(c.only) > 0 && !c.begins(k.name) })
}

// inTurn leaves each case one of its types of cache.
func inTurn(cases []testCase) []testCase {
	for i, k := range cases {
		if len(k.kv) > 1 {
			cases[i].kv = k.kv[i%len(k.kv):][:1]
		}
	}
	return cases
}

// begins tells whether a name begins with one of those that only shall run.
func (c config) begins(name string) bool {
	return slices.ContainsFunc(c.only, func(only string) bool { return strings.HasPrefix(name, only) })
}
