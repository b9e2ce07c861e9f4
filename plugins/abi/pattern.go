package abi

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// What patterns of a schema may take. An instruction of a program is some 40 bytes, and
// matching takes each of them for each byte of a text at worst.
const (
	maxPatternSource = 1 << 10
	maxPattern       = 2_000  // instructions
	maxPatterns      = 20_000 // of one schema
)

// ProgramSize bounds the instructions that a regular expression (RE2, as in package
// regexp) compiles to, without compiling it: counted repetitions multiply, and twenty
// bytes may stand for a million instructions. It is an error where the expression is none.
func ProgramSize(expr string) (int, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("abi: %w", err)
	}
	return programSize(re) + 2, nil // the first instruction and the match
}

// programCeiling is where sizes stop to grow.
const programCeiling = 1 << 30

// programSize recurses as deep as the parser lets expressions nest, 1,000 levels.
func programSize(re *syntax.Regexp) int {
	sum := 0
	for _, s := range re.Sub {
		sum = min(sum+programSize(s), programCeiling)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) + 1
	case syntax.OpRepeat:
		times := max(re.Min+1, re.Max) // x{2,} is xx+, x{2,5} is xx(x(x(x)?)?)?
		return min((sum+1)*times+1, programCeiling)
	case syntax.OpCapture:
		return min(sum+2, programCeiling)
	case syntax.OpAlternate:
		return min(sum+len(re.Sub), programCeiling)
	}
	return min(sum+1, programCeiling)
}

// parsePattern compiles a pattern within what the budget leaves.
func (s *Schema) parsePattern(o *members, b *budget) {
	p := o.text("pattern", maxPatternSource)
	if p == "" {
		return
	}
	n, err := ProgramSize(p)
	switch {
	case err != nil:
		o.fail("pattern", "%v", err)
		return
	case n > maxPattern:
		o.fail("pattern", "is of %d instructions, at most %d", n, maxPattern)
		return
	case b.programs < n:
		o.fail("pattern", "with the others it is of more than %d instructions", maxPatterns)
		return
	}
	b.programs -= n
	if s.pattern, err = regexp.Compile(p); err != nil {
		o.fail("pattern", "%v", err)
	}
	s.program = n
}
