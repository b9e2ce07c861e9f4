package draft

// Guess is a token that may come next.
type Guess struct {
	ID   int32
	Odds float64 // how likely it comes, if the guesses before it came
}

// The odds of a kind of guess are a mean over its last trials: trials beyond
// oddsWindow count half as much as the newer ones. What is believed beforehand counts
// as oddsPrior trials.
const (
	oddsWindow = 32
	oddsPrior  = 4
)

// odds counts how often guesses of one kind came true.
type odds struct {
	came, tried float64
}

// mean returns the share of guesses that came, near prior while there are few.
func (o *odds) mean(prior float64) float64 {
	return (o.came + prior*oddsPrior) / (o.tried + oddsPrior)
}

// saw counts one guess.
func (o *odds) saw(came bool) {
	if o.tried >= oddsWindow {
		o.came, o.tried = o.came/2, o.tried/2
	}
	o.tried++
	if came {
		o.came++
	}
}
