package sampling

// cut splits the members of a bucket after the candidate with which, in the order
// of candidates, the sum of size reaches target; it reorders members, whose first
// n are those up to and including that one, last among them in order. It is a
// quickselect by mass: linear time on average, and the result does not depend on
// the pivots.
func cut(members []Candidate, target float64, size func(Candidate) float64) (n int, last Candidate) {
	from, to := 0, len(members) // the wanted candidate is in members[from:to]
	for to-from > 1 {
		mid := from + partition(members[from:to])
		sum := 0.0
		for _, c := range members[from:mid] {
			sum += size(c)
		}
		if sum >= target {
			to = mid
		} else {
			target -= sum
			from = mid
		}
	}
	return to, members[from]
}

// partition reorders m, which has at least two members, so that each of the first
// k comes before each of the rest, and returns k, between 1 and len(m)−1.
func partition(m []Candidate) int {
	pivot := median(m[0], m[len(m)/2], m[len(m)-1])
	i, j := 0, len(m)-1
	for {
		for m[i].before(pivot) {
			i++
		}
		for pivot.before(m[j]) {
			j--
		}
		if i >= j {
			break
		}
		m[i], m[j] = m[j], m[i]
		i++
		j--
	}
	return max(1, min(i, len(m)-1))
}

// median returns the one of three candidates that is between the others.
func median(a, b, c Candidate) Candidate {
	if b.before(a) {
		a, b = b, a
	}
	if c.before(b) {
		b = c
		if b.before(a) {
			b = a
		}
	}
	return b
}
