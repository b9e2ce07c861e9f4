package tokenizer

import (
	"math"
	"strings"
	"testing"
	"time"
)

// families names one vocabulary for each way text is cut and merged.
var families = []string{"llama-spm", "gpt-2", "qwen35", "deepseek-llm", "deepseek-coder", "aquila", "mpt", "gemma-4", "nomic-bert-moe", "bert-bge"}

// TestTimeIsNearLinear encodes up to 1 MiB of one repeated character and
// measures how the time grows with each doubling: over three doublings the
// factor is 2 on average for linear time, 4 for quadratic.
func TestTimeIsNearLinear(t *testing.T) {
	const doublings, limit = 3, 2.3
	small := 1 << 17
	if testing.Short() || raceEnabled {
		small = 1 << 14
	}
	for _, name := range families {
		for _, unit := range []string{"a", " ", "7", "中", "!"} {
			tok := open(t, name)
			t.Run(name+"/"+unit, func(t *testing.T) {
				var growth float64
				for range 5 { // a busy machine can spoil a measurement, not five
					short := encodeTime(tok, strings.Repeat(unit, small/len(unit)))
					long := encodeTime(tok, strings.Repeat(unit, small<<doublings/len(unit)))
					growth = math.Pow(float64(long)/float64(short), 1.0/doublings)
					if growth <= limit {
						t.Logf("%.2f a doubling, %v at last", growth, long)
						return
					}
				}
				t.Errorf("time grows by %.2f a doubling, want at most %.1f", growth, limit)
			})
		}
	}
}

// encodeTime returns the shorter of two runs.
func encodeTime(tok *Tokenizer, text string) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 2 {
		best = min(best, cpuTime(func() { tok.Encode(text, asPrompt) }))
	}
	return best
}

// TestGrowthOfQuadraticTime shows that the measure above tells quadratic time.
func TestGrowthOfQuadraticTime(t *testing.T) {
	run := func(n int) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			best = min(best, cpuTime(func() {
				for s := strings.Repeat("a", n); len(s) > 0; s = s[min(len(s), 8):] {
					if strings.IndexByte(s, 'b') >= 0 {
						t.Fatal("found")
					}
				}
			}))
		}
		return best
	}
	if g := math.Pow(float64(run(1<<17))/float64(run(1<<14)), 1.0/3); g <= 2.3 {
		t.Errorf("quadratic time grows by %.2f a doubling", g)
	}
}
