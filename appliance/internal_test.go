package appliance

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNewIDSortsByTime(t *testing.T) {
	var ids []string
	for range 5000 {
		ids = append(ids, NewID())
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort in the order in which they were made")
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 5000 {
		t.Error("an id was made twice")
	}
	for _, id := range ids {
		if len(id) != 31 || !strings.HasPrefix(id, "cmpl-") || strings.Trim(id[5:], idAlphabet) != "" {
			t.Fatalf("id %q has not the form", id)
		}
	}
	for _, c := range []struct {
		ms   uint64
		tail uint16
		n    uint64
		want string
	}{
		{0, 0, 0, "cmpl-00000000000000000000000000"},
		{1<<48 - 1, 1<<16 - 1, 1<<64 - 1, "cmpl-7zzzzzzzzzzzzzzzzzzzzzzzzz"},
		{1469918176385, 0, 0, "cmpl-01aryz6s410000000000000000"}, // the ULID of that instant
		{0, 1, 0, "cmpl-00000000000000000000000001"},
		{0, 0, 1, "cmpl-00000000000000000000002000"},
	} {
		if got := formatID(c.ms, c.tail, c.n); got != c.want {
			t.Errorf("formatID(%d, %d, %d) = %s, want %s", c.ms, c.tail, c.n, got, c.want)
		}
	}
}

func TestPace(t *testing.T) {
	var p pace
	if got := p.rows(false); got != firstRows {
		t.Errorf("%d rows at unknown speed, want %d", got, firstRows)
	}
	p.saw(1, time.Hour) // a single row tells nothing of prompts
	p.saw(64, 0)        // a clock that stands still neither
	if got := p.rows(false); got != firstRows {
		t.Errorf("%d rows at unknown speed, want %d", got, firstRows)
	}
	for _, c := range []struct {
		perRow         time.Duration
		alone, company int
	}{
		{100 * time.Microsecond, 1024, 512},
		{time.Millisecond, 64, 32},
		{10 * time.Millisecond, 8, 8},
		{time.Second, 8, 8},
	} {
		p := pace{}
		p.saw(64, 64*c.perRow)
		if a, b := p.rows(false), p.rows(true); a != c.alone || b != c.company {
			t.Errorf("at %v a row: %d rows alone and %d in company, want %d and %d", c.perRow, a, b, c.alone, c.company)
		}
	}
	for range 50 {
		p.saw(64, 64*time.Millisecond)
	}
	if got := p.rows(false); got != 64 {
		t.Errorf("%d rows after the speed has settled, want 64", got)
	}
}

func TestQuoteIsShort(t *testing.T) {
	for _, s := range []string{"", "a", strings.Repeat("a", 100), strings.Repeat("\x00", 100), strings.Repeat("é", 100), "\"\n"} {
		q := quote(s)
		if len(q) > 64 || strings.ContainsAny(q, "\x00\n") || q[0] != '"' || q[len(q)-1] != '"' {
			t.Errorf("quote(%.10q…) = %s", s, q)
		}
	}
}

// TestShareIsFair holds that a short prompt gets through beside a long one.
func TestShareIsFair(t *testing.T) {
	for _, c := range []struct {
		name   string
		left   []int // prompt tokens left, 0 = decodes
		budget int
		want   []int
	}{
		{"one", []int{1000}, 64, []int{64}},
		{"short beside long", []int{1000, 10}, 64, []int{54, 10}},
		{"equal", []int{1000, 1000}, 64, []int{32, 32}},
		{"the rest to the first", []int{1000, 1000, 5}, 64, []int{38, 21, 5}},
		{"decoding ones take none", []int{0, 100}, 64, []int{0, 64}},
		{"less than one each", []int{9, 9, 9}, 2, []int{2, 0, 0}},
		{"nothing", []int{9}, 0, []int{0}},
	} {
		s := &scheduler{}
		reading := 0
		for _, n := range c.left {
			s.running = append(s.running, &sequence{prompt: make([]int32, n), tokens: make([]int32, n)})
			if n > 0 {
				reading++
			}
		}
		s.share(c.budget, reading)
		var got []int
		for _, q := range s.running {
			got = append(got, q.take)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
