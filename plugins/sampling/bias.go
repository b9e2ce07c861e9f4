package sampling

// Bias is an amount added to one token's logit.
type Bias struct {
	ID    int32
	Value float32
}

// biasStage adds logit_bias.
type biasStage []Bias

func (b biasStage) Apply(d *Distribution) {
	for _, e := range b {
		d.Add(e.ID, e.Value)
	}
}
