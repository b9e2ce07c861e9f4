package compute

import "time"

// What an unknown device is taken for until it was measured: slower than a Raspberry
// Pi's GPU, so that first submissions are short rather than long.
const (
	firstDispatch = 20e-6 // seconds of a dispatch that does nothing
	firstBytes    = 2e9   // per second
	firstFlops    = 10e9  // per second
)

// pace predicts how long dispatches take and learns from what runs took. It keeps one
// number: how much faster or slower the device is than the first assumption.
type pace struct {
	ratio float64 // measured to assumed time; 0 = nothing measured
}

// assumed is the time of a dispatch on an unknown device, in seconds.
func assumed(d *dispatch) float64 {
	return firstDispatch + max(float64(d.bytes)/firstBytes, float64(d.flops)/firstFlops)
}

func (p *pace) scale() float64 {
	if p.ratio == 0 {
		return 1
	}
	return p.ratio
}

// predict is how long a dispatch will take.
func (p *pace) predict(d *dispatch) time.Duration {
	return time.Duration(p.scale() * assumed(d) * float64(time.Second))
}

// near tells whether what was cut at a scale is still cut well.
func (p *pace) near(scale float64) bool {
	now := p.scale()
	return now < 2*scale && scale < 4*now
}

// assumedTime is the time of a list on an unknown device, in seconds.
func assumedTime(list []dispatch) float64 {
	sum := 0.0
	for i := range list {
		sum += assumed(&list[i])
	}
	return sum
}

// measured takes into account how long something took for which a time was assumed. What
// took longer counts at once, what was faster by and by, for a watchdog forgives no
// exception.
func (p *pace) measured(assumed float64, took time.Duration) {
	ratio := took.Seconds() / assumed
	if p.ratio == 0 || ratio > p.ratio {
		p.ratio = ratio
		return
	}
	p.ratio += (ratio - p.ratio) / 8
}
