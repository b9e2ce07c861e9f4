package registry

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// Range is a set of versions.
type Range struct {
	text  string
	tests []test
}

// test is one comparison that a version must pass.
type test struct {
	op      string
	version string // canonical, with v
}

// ParseRange reads a range of versions: comparisons that must all hold, parted by spaces
// or commas. 1.2.3 or =1.2.3 is this version; >=, >, <=, < compare; ^1.2.3 is up to the
// next major version (below 1.0.0: minor); ~1.2.3 up to the next minor one; 1.2 and 1.2.x
// are all of 1.2; "" and * are all. Versions before a release (1.0.0-rc.1) are taken only
// where the range names one.
func ParseRange(text string) (Range, error) {
	r := Range{text: text}
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == ',' }) {
		tests, ok := comparison(word)
		if !ok || len(r.tests) > 16 {
			return Range{}, fmt.Errorf("registry: %.64q is no range of versions", text)
		}
		r.tests = append(r.tests, tests...)
	}
	return r, nil
}

func comparison(word string) ([]test, bool) {
	at := strings.IndexAny(word, "0123456789xv*")
	if at < 0 {
		return nil, false
	}
	op, number := word[:at], word[at:]
	whole := "v" + strings.TrimPrefix(number, "v")
	for strings.HasSuffix(whole, ".x") || strings.HasSuffix(whole, ".*") {
		whole = whole[:len(whole)-2]
	}
	if whole == "v*" || whole == "vx" {
		return nil, op == ""
	}
	if !semver.IsValid(whole) || !small(whole) {
		return nil, false
	}
	from := semver.Canonical(whole)
	parts := strings.Count(strings.SplitN(whole, "-", 2)[0], ".") + 1
	switch op {
	case ">=", ">", "<=", "<":
		return []test{{op, from}}, true
	case "", "=":
		switch parts {
		case 1:
			return []test{{">=", from}, {"<", bump(from, 0)}}, true
		case 2:
			return []test{{">=", from}, {"<", bump(from, 1)}}, true
		}
		return []test{{"=", from}}, true
	case "^":
		at := 0
		if semver.Major(from) == "v0" && parts > 1 {
			at = 1
		}
		return []test{{">=", from}, {"<", bump(from, at)}}, true
	case "~":
		return []test{{">=", from}, {"<", bump(from, min(parts-1, 1))}}, true
	}
	return nil, false
}

// small tells whether all numbers of a version can be counted on.
func small(v string) bool {
	numbers, _, _ := strings.Cut(strings.SplitN(v, "-", 2)[0], "+")
	for n := range strings.SplitSeq(numbers[1:], ".") {
		if len(n) > 9 {
			return false
		}
	}
	return true
}

// bump is the first version behind all that agree with v up to part at.
func bump(v string, at int) string {
	var n [3]uint64
	_, _ = fmt.Sscanf(v, "v%d.%d.%d", &n[0], &n[1], &n[2]) // v is canonical
	n[at]++
	for k := at + 1; k < len(n); k++ {
		n[k] = 0
	}
	return fmt.Sprintf("v%d.%d.%d", n[0], n[1], n[2])
}

// Has tells whether a version is in the range.
func (r Range) Has(version string) bool {
	v := "v" + version
	early := semver.Prerelease(v) != ""
	for _, t := range r.tests {
		c := semver.Compare(v, t.version)
		ok := false
		switch t.op {
		case "=":
			ok = c == 0
		case ">=":
			ok = c >= 0
		case ">":
			ok = c > 0
		case "<=":
			ok = c <= 0
		case "<":
			ok = c < 0
		}
		if !ok {
			return false
		}
		early = early && semver.Prerelease(t.version) == ""
	}
	return !early
}

// String is the range as it was written.
func (r Range) String() string {
	if r.text == "" {
		return "*"
	}
	return r.text
}

// compare orders versions.
func compare(a, b string) int { return semver.Compare("v"+a, "v"+b) }
