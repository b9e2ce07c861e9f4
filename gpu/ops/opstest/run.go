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
	part, parts int // only every parts-th check, from part on; parts 0: all
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

// Part runs a share of the suite: every n-th check, from number i on. Backends that share
// their code but for a dialect can divide the suite between them.
func Part(i, n int) Option { return func(c *config) { c.part, c.parts = i, n } }

// A check is one test of a backend.
type check struct {
	name string
	run  func(ops.Backend) error
}

// Run runs the suite. open returns a backend for each check, closed by the suite.
func Run(t *testing.T, open func(t *testing.T) ops.Backend, options ...Option) {
	c := config{large: os.Getenv("GANGLION_OPSTEST_LARGE") != ""}
	for _, o := range options {
		o(&c)
	}
	refused := map[string]bool{}
	for i, check := range suite(c) {
		if c.parts > 0 && i%c.parts != c.part {
			continue
		}
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
		for _, k := range cases {
			checks = append(checks, check{k.name, k.check})
		}
	}
	if c.large {
		checks = append(checks, check{"matmul/large", checkLarge})
	}
	checks = append(checks, embedChecks()...)
	checks = append(checks, lowRankChecks()...)
	checks = append(checks, headChecks()...)
	checks = append(checks, modelChecks()...)
	return append(checks, runtimeChecks()...)
}
