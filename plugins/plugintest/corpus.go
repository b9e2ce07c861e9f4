package plugintest

import "math"

// Vocabularies are the sizes of vocabulary that a plugin is run with: those of Llama 2,
// Llama 3, Qwen 3 and Gemma 3.
var Vocabularies = []int{32000, 128256, 151936, 262144}

// mix is the finaliser of MurmurHash3: each bit of a number decides about all.
func mix(x uint32) uint32 {
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}

// Row writes the logits of a step into row, [vocabulary], and returns it. They look like
// a model's: a broad hill far below, and some tens of tokens above it, more or less
// certain from step to step. Same seed and step, same row, on every machine.
func Row(row []float32, seed uint32, step int) []float32 {
	key := mix(seed*0x9e3779b9 + uint32(step)*0x7f4a7c15 + 1)
	for i := range row {
		h := mix(uint32(i) ^ key)
		sum := h&0xff + h>>8&0xff + h>>16&0xff + h>>24 // four numbers: a hill
		row[i] = float32(float32(sum)*(1.0/64)) - 20
	}
	const peaks = 60
	steep := [...]float32{0.05, 0.2, 0.6, 2}[mix(key)&3]
	for k := range min(peaks, len(row)/2) {
		h := mix(key + uint32(k)*0x632be5ab)
		id := firstWord(len(row)) + int(h)%max(len(row)-firstWord(len(row)), 1)
		if id < 0 {
			id += len(row) - firstWord(len(row))
		}
		row[id] = 4 - float32(steep*float32(k)) - float32(h>>24)*(1.0/1024)
	}
	return row
}

// firstWord is the first token that is neither control nor a single byte, where there is
// room for such.
func firstWord(size int) int {
	if size > controls+256+64 {
		return controls + 256
	}
	return 0
}

// edge is a kind of frame that plugins seldom meet.
type edge struct {
	name   string
	prompt int  // tokens
	max    int  // tokens of the text
	scarce bool // so few tokens are left that a plugin may ban all of them
	row    func(row []float32)
}

var none = float32(math.Inf(-1))

// edges are the rows and places at which plugins break.
var edges = []edge{
	{name: "one candidate", prompt: 5, max: 4, scarce: true, row: func(row []float32) { only(row, 0) }},
	{name: "all but one at -Inf", prompt: 5, max: 4, scarce: true, row: func(row []float32) { only(row, len(row)-1) }},
	{name: "all equal", prompt: 5, max: 4, row: func(row []float32) { fill(row, 0) }},
	{name: "all equal and far below", prompt: 5, max: 4, row: func(row []float32) { fill(row, -1e30) }},
	{name: "half at -Inf", prompt: 5, max: 4, scarce: true, row: func(row []float32) { fill(row[:len(row)/2], none) }},
	{name: "very large", prompt: 5, max: 4, row: func(row []float32) {
		for i := range row {
			row[i] *= 1e30
		}
	}},
	{name: "step 0 without a prompt", prompt: 0, max: 4},
	{name: "the end of the text first", prompt: 5, max: 4, row: func(row []float32) { row[tokenEOS] = 40 }},
	{name: "the last token", prompt: 5, max: 1},
}

func only(row []float32, id int) {
	fill(row, none)
	row[id] = 1
}

func fill(row []float32, v float32) {
	for i := range row {
		row[i] = v
	}
}
