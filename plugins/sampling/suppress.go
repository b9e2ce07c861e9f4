package sampling

// suppressStage bans the tokens that the model file says are never to be produced.
type suppressStage []int32

func (s suppressStage) Apply(d *Distribution) {
	for _, id := range s {
		d.Ban(id)
	}
}
