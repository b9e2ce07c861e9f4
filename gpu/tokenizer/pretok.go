package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// preTokenizer is what a name in tokenizer.ggml.pre stands for.
type preTokenizer struct {
	stages []stage
	// ignoreMerges takes a piece that is a token as it is, without merging.
	ignoreMerges bool
	addBOS       bool
	alwaysBOS    bool // even where the file says not to, as early files did
	noBOS        bool // the model has no BOS token unless the file names one
	rawUTF8      bool // merges work on characters, not on the byte alphabet
}

// The expressions of the models that share them. Each is the expression of the
// model's tokenizer.json; split.go has them in full.
var (
	gpt2Stages   = []stage{gpt2Words{}}
	llama3Stages = []stage{words{contractions: true, letters: letter, digits: 3, tail: "\r\n"}}
	qwen2Stages  = []stage{words{contractions: true, letters: letter, digits: 1, tail: "\r\n"}}
	gpt4oStages  = []stage{caseWords{contractions: true, digits: 3}}
	digitStages  = []stage{run{number, 1}, gpt2Words{}}
	lineStages   = []stage{lines{}}

	deepseek3Stages = []stage{run{number, 3}, setRun{set: newRunes(deepseekScripts)}, scripts{}}
	bloomStages     = []stage{bloomWords{newRunes(bloomStops)}}
)

// Character sets of the expressions. Escapes stand for characters that editors
// are prone to replace by their canonical equivalents.
const (
	deepseekScripts = "一-龥぀-ゟ゠-ヿ"
	deepseekCJK     = "一-龥ࠀ-一가-퟿"
	deepseekPunct   = "!-/:-~！-／：-～‘-‟　-。"
	deepseekLetters = "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
	bloomStops      = "(|.,!?…。，、।۔،)"
)

// preTokenizers maps every known name to its rule.
var preTokenizers = map[string]preTokenizer{
	"default": {stages: []stage{falconPunct{}, gpt2Words{}, run{number, 0}, threeDigits{}}},
	"falcon":  {stages: []stage{falconPunct{grave: true}, gpt2Words{}, threeDigits{}}},

	"deepseek-llm": {stages: []stage{
		run{newline, 1}, setRun{newRunes(deepseekLetters), true}, setRun{newRunes(deepseekPunct), true},
		trailingBlanks{}, setRun{set: newRunes(deepseekCJK)}, run{number, 0},
	}},
	"deepseek-coder": {stages: []stage{
		run{newline, 1}, spacedRun{letter}, spacedRun{punct}, setRun{set: newRunes(deepseekCJK)}, run{number, 1},
	}},
	"spark2_5": {stages: []stage{
		run{number, 3}, setRun{set: newRunes(deepseekScripts)}, scripts{singleBreaks: true}, run{number, 1},
	}},
	"qwen35": {stages: []stage{words{contractions: true, letters: letter | mark, digits: 1, tail: "\r\n"}}},
	"tekken": {stages: []stage{caseWords{digits: 1}}, ignoreMerges: true, addBOS: true},
	"minicpm5": {
		stages:       []stage{run{number, 3}, words{contractions: true, letters: letter, tail: "\r\n"}},
		ignoreMerges: true,
	},
	"ufakzeka":   {stages: []stage{words{letters: letter, digits: 1, tail: "\r\n"}}},
	"seed-coder": {stages: []stage{words{contractions: true, letters: letter, digits: 1}}},
	"laguna":     {stages: append(slices.Clip(lineStages), qwen2Stages...)},
	"viking":     {stages: append(slices.Clip(bloomStages), run{number, 1})},

	"chatglm-bpe": {stages: llama3Stages, noBOS: true},
	"glm4":        {stages: llama3Stages, noBOS: true, ignoreMerges: true},
	"glm5":        {stages: llama3Stages, noBOS: true, ignoreMerges: true},

	"gemma4":                   {stages: lineStages, rawUTF8: true, alwaysBOS: true},
	"granite-embed-multi-311m": {stages: lineStages, rawUTF8: true, alwaysBOS: true},
	"sarvam-moe":               {stages: lineStages, rawUTF8: true},
}

func init() {
	for _, group := range []struct {
		rule  preTokenizer
		names string
	}{
		{preTokenizer{stages: llama3Stages, ignoreMerges: true, addBOS: true},
			"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano"},
		{preTokenizer{stages: llama3Stages}, "dbrx smaug-bpe"},
		{preTokenizer{stages: qwen2Stages},
			"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2 bailingmoe bailingmoe2 llada-moe"},
		{preTokenizer{stages: gpt4oStages}, "gpt-4o llama4 kanana2 talkie minimax-m2"},
		{preTokenizer{stages: digitStages},
			"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2"},
		{preTokenizer{stages: gpt2Stages},
			"gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 mellum modern-bert roberta-bpe " +
				"jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code"},
		{preTokenizer{stages: deepseek3Stages}, "deepseek-v3 joyai-llm hunyuan-dense hy_v4"},
		{preTokenizer{stages: bloomStages}, "bloom poro-chat gpt3-finnish"},
	} {
		for name := range strings.FieldsSeq(group.names) {
			preTokenizers[name] = group.rule
		}
	}
}

// PreTokenizers lists the values of tokenizer.ggml.pre that New accepts, in
// alphabetical order.
func PreTokenizers() []string {
	var names []string
	for name := range preTokenizers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func findPreTokenizer(name string) (preTokenizer, error) {
	p, ok := preTokenizers[name]
	if !ok {
		return p, fmt.Errorf("tokenizer: tokenizer.ggml.pre: unknown %q; known are %s", name, strings.Join(PreTokenizers(), ", "))
	}
	return p, nil
}

// bloomWords matches BLOOM's " ?[^(\s|stops)]+".
type bloomWords struct{ stops *runes }

func (w bloomWords) match(t *classTable, s string, i int) (int, bool) {
	j := i
	if s[i] == ' ' {
		j++
	}
	e := j
	for {
		c, n := t.at(s, e)
		if c == 0 || c&space != 0 {
			break
		}
		if stop, _ := w.stops.has(s, e); stop {
			break
		}
		e += n
	}
	if e > j {
		return e, true
	}
	return next(s, i), false
}
