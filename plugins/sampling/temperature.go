package sampling

// minTemperature bounds the factor by which logits are stretched; below it the
// distribution is a point for any two logits that differ.
const minTemperature = 1e-6

// temperatureStage divides logits by a temperature above 0. It only notes the
// factor: the logits stay as they are and weights are taken with it.
type temperatureStage float64

func (t temperatureStage) Apply(d *Distribution) {
	d.scale /= max(float64(t), minTemperature)
	d.ready = false
}
