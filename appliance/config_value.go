package appliance

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The parsers below say what is wrong without the name: their caller adds it.

func parseBool(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", v)
	}
	return b, nil
}

// parseInt reads an integer that fits an int on every system, so that a file means the
// same everywhere.
func parseInt(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is out of range", v)
	case err != nil:
		return 0, fmt.Errorf("%q is not an integer", v)
	}
	return n, nil
}

func parseFloat(v string) (float64, error) {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q is not a number", v)
	}
	return x, nil
}

// ParseDuration reads what time.ParseDuration does, and whole days ("30d").
func ParseDuration(v string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration such as 12h or 30d", v)
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/int64(24*time.Hour) {
			return 0, bad
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return 0, bad
	}
	return d, nil
}

// formatDuration drops the minutes and seconds that are zero: 720h, not 720h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// byteUnits are in the order they are tried: the longest suffix first, the largest
// binary unit first for display.
var byteUnits = []struct {
	suffix string
	factor int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// ParseBytes reads a count of bytes with an optional unit: binary (MiB) or decimal (MB).
func ParseBytes(v string) (int64, error) {
	digits, factor := v, int64(1)
	for _, u := range byteUnits {
		if d, ok := strings.CutSuffix(v, u.suffix); ok {
			digits, factor = strings.TrimSpace(d), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a size such as 1GiB or 500MB", v)
	}
	return n * factor, nil
}

// formatBytes writes a size so that ParseBytes reads the same: with the largest binary
// unit that divides it.
func formatBytes(n int64) string {
	for _, u := range byteUnits[:4] {
		if n != 0 && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
