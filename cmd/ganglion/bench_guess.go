package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ganglion/appliance"
	"ganglion/gpu/tokenizer"
)

// guessResult is what guessing ahead brings and costs: decode rates with and without
// it, measured in turns in one run.
type guessResult struct {
	Source     appliance.Speculation `json:"source"`
	Repetitive guessRates            `json:"repetitive"` // a text that repeats itself, greedy
	Other      guessRates            `json:"other"`      // one that does not, drawn at temperature 1
}

// guessRates are tokens per second, medians of the repetitions; Ratio is that of
// guessed to plain.
type guessRates struct {
	Plain    float64 `json:"plain_tokens_per_second"`
	Guessed  float64 `json:"guessed_tokens_per_second"`
	Ratio    float64 `json:"ratio"`
	Drafted  int     `json:"drafted_tokens"`  // of the last repetition
	Accepted int     `json:"accepted_tokens"` // of these
}

// print writes a line of the table.
func (r guessRates) print(w io.Writer, name, text string) {
	fmt.Fprintf(w, "%-8s  %8.1f tokens/s (%s: %.2f times the %.1f without; %d of %d guesses came)\n",
		name, r.Guessed, text, r.Ratio, r.Plain, r.Accepted, r.Drafted)
}

// refrain repeats itself, and so do most models that go on from it.
const refrain = `The quick brown fox jumps over the lazy dog, and the lazy dog looks up at the quick brown fox.
`

// prose is the beginning of a text that has no reason to repeat itself.
const prose = "It was late in the evening when the last train left the harbour town. On the platform stood"

// measureGuesses completes two texts with and without guessing ahead.
func measureGuesses(ctx context.Context, s *appliance.Service, m appliance.Model, source appliance.Speculation, n, repeat int) (*guessResult, error) {
	b := &guessBench{service: s, model: m, source: source, generate: max(n, 2), repeat: repeat}
	r := &guessResult{Source: source}
	var err error
	if r.Repetitive, err = b.rates(ctx, strings.Repeat(refrain, 6), 0); err != nil {
		return nil, err
	}
	r.Other, err = b.rates(ctx, prose, 1)
	return r, err
}

type guessBench struct {
	service          *appliance.Service
	model            appliance.Model
	source           appliance.Speculation
	generate, repeat int
}

// rates measures one text in turns, plain and guessed.
func (b *guessBench) rates(ctx context.Context, text string, temperature float64) (r guessRates, err error) {
	var plain, guessed []float64
	for i := range b.repeat + 1 { // the first round warms up
		seed := int64(i)
		for turn := range 2 {
			guess := turn != i%2 // each goes first as often as the other
			source := appliance.SpeculateOff
			if guess {
				source = b.source
			}
			rate, res, err := b.rate(ctx, text, temperature, seed, source)
			if err != nil {
				return r, err
			}
			if guess {
				r.Drafted, r.Accepted = res.DraftedTokens, res.AcceptedTokens
			}
			switch {
			case i == 0:
			case guess:
				guessed = append(guessed, rate)
			default:
				plain = append(plain, rate)
			}
		}
	}
	r.Plain, r.Guessed = median(plain), median(guessed)
	r.Ratio = r.Guessed / r.Plain
	return r, nil
}

// rate completes a text and returns the tokens per second after the first one.
func (b *guessBench) rate(ctx context.Context, text string, temperature float64, seed int64, source appliance.Speculation) (float64, *appliance.Result, error) {
	v := b.model.Vocabulary()
	prompt := v.Encode(text, tokenizer.EncodeOptions{AddSpecial: true})
	limit := int64(b.generate)
	prompt = prompt[:min(len(prompt), max(b.model.Info().Context-b.generate, 1))]
	c, err := b.service.Start(ctx, &appliance.Request{
		ID: appliance.NewID(), Route: "cli bench", PromptTokens: prompt, MaxTokens: &limit,
		Temperature: &temperature, Seed: &seed, Speculate: source, LogitBias: endless(v),
	})
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	res, err := c.Wait(ctx)
	if err != nil {
		return 0, nil, err
	}
	return float64(len(res.Tokens)-1) / max(res.Timings.Decode.Seconds(), 1e-9), res, nil
}

// endless keeps a model from ending its text.
func endless(v appliance.Vocabulary) (bias []appliance.Bias) {
	for id := range int32(v.VocabSize()) {
		if v.IsEOG(id) {
			bias = append(bias, appliance.Bias{Key: strconv.Itoa(int(id)), ID: int64(id), Value: -100})
		}
	}
	return bias
}
