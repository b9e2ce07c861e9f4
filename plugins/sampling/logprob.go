package sampling

import "math"

// leastLogprob stands for probabilities too small, or too ill-defined, to say.
const leastLogprob = -9999

// Logprob returns the natural logarithm of a token's probability in the model's
// own distribution, from its logit and the log-sum-exp of all logits: always
// finite and never positive.
func Logprob(logit, logSumExp float32) float64 {
	l := float64(logit) - float64(logSumExp)
	if math.IsNaN(l) || l < leastLogprob {
		return leastLogprob
	}
	return min(l, 0)
}
