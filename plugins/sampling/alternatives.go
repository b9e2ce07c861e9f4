package sampling

// AppendTop appends the k most likely tokens of the model's own distribution, best
// first, ties by lower id, to dst, with their logits.
func AppendTop(dst []Candidate, in *Input, k int) []Candidate {
	from := len(dst)
	if len(in.IDs) >= k || in.Row == nil {
		for i := range min(k, len(in.IDs)) {
			dst = append(dst, Candidate{in.IDs[i], in.Logits[i]})
		}
		return dst
	}
	for id, l := range in.Row {
		c := Candidate{int32(id), l}
		if n := len(dst) - from; n == k {
			if k == 0 || !c.before(dst[len(dst)-1]) {
				continue
			}
			dst = dst[:len(dst)-1]
		}
		i := len(dst)
		dst = append(dst, c)
		for ; i > from && c.before(dst[i-1]); i-- {
			dst[i] = dst[i-1]
		}
		dst[i] = c
	}
	return dst
}
