package sampling

// penaltyStage lowers the logits of generated tokens: by presence once, and by
// frequency for each time the token was generated. The prompt does not count.
type penaltyStage struct {
	presence, frequency float64
	ids                 []int32 // distinct generated tokens, in order of appearance
	times               map[int32]int
}

// accept counts a generated token.
func (p *penaltyStage) accept(id int32) {
	if p.times == nil {
		p.times = make(map[int32]int)
	}
	if p.times[id]++; p.times[id] == 1 {
		p.ids = append(p.ids, id)
	}
}

// retract takes back the latest token that was accepted: if it appeared with it, it is
// the last of ids.
func (p *penaltyStage) retract(id int32) {
	if p.times[id]--; p.times[id] == 0 {
		delete(p.times, id)
		p.ids = p.ids[:len(p.ids)-1]
	}
}

// off tells whether the stage does nothing.
func (p *penaltyStage) off() bool { return p.presence == 0 && p.frequency == 0 }

func (p *penaltyStage) Apply(d *Distribution) {
	if p.off() {
		return
	}
	for _, id := range p.ids {
		d.Add(id, penalty(p.presence, p.frequency, p.times[id]))
	}
}

// penalty returns what is added to the logit of a token generated times times.
func penalty(presence, frequency float64, times int) float32 {
	return -float32(presence + float64(frequency*float64(times)))
}
