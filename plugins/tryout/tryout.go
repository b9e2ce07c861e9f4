// Package tryout runs texts that were made before through a plugin, to see what it would
// have changed and what it costs.
//
// At each step the plugin sees what the model said then, with the tokens that came as its
// past, and a token is chosen with it and without it, by the same chain and seed. Without
// it the choice should be the token that came; where it is, a choice that differs with the
// plugin is the plugin's doing. Then the token that came joins the text, whatever was
// chosen, so that all steps of a text count.
//
// What the model said is a row of logits, which is exact, or what the log kept of it: the
// best few tokens with their log-probabilities ([FromAlternatives]). Those are exact, with
// the maximum, the log-sum-exp and the mass of these tokens; what is below them is not
// known and is spread evenly, so mean, deviation, entropy and whatever a plugin does with
// the tail are approximate.
//
// The package imports plugins/abi, plugins/host, plugins/pipeline and plugins/sampling.
package tryout

import (
	"context"
	"errors"
	"math"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/rowstats"
	"ganglion/plugins/sampling"
)

// Token is a token that came.
type Token struct {
	ID   int32
	Text string
}

// Text is a text that was made before.
type Text struct {
	Model      string
	Context    int
	Prompt     []int32 // nil: not known, then plugins see the generated tokens alone
	PromptText string
	Tokens     []Token
	MaxTokens  int
	Params     sampling.Params // Plugins is not looked at
	// Input is what the model said at a step, with a Row; ok is false where that is not
	// known. It is valid until the next call. An error ends the text.
	Input func(step int) (in sampling.Input, ok bool, err error)
}

// Report is what a plugin would have done to a text, or to several.
type Report struct {
	Texts      int     `json:"texts"`
	Tokens     int     `json:"tokens"`
	Seen       int     `json:"seen"`       // tokens of which it is known what the model said
	Reproduced int     `json:"reproduced"` // of these, those that come again without the plugin
	Other      int     `json:"other"`      // of these, those for which another one comes with it
	Forced     int     `json:"forced"`     // tokens that it forces
	Rewinds    int     `json:"rewinds"`    // times that it takes tokens back
	Stops      int     `json:"stops"`      // texts that it ends before they ended
	Rewritten  int     `json:"rewritten"`  // pieces of text that it changes
	Failed     int     `json:"failed"`     // texts in which it fails
	Idle       int     `json:"idle"`       // texts that it is not interested in
	Error      string  `json:"error,omitempty"`
	Calls      int     `json:"calls"`
	US         float64 `json:"us"` // in the hooks of steps
	Fuel       int64   `json:"fuel"`
	OnceUS     float64 `json:"once_us"` // opening, and in the hooks prompt and end
	OnceFuel   int64   `json:"once_fuel"`
}

// Add adds the numbers of another report.
func (r *Report) Add(o *Report) {
	r.Texts, r.Tokens, r.Seen = r.Texts+o.Texts, r.Tokens+o.Tokens, r.Seen+o.Seen
	r.Reproduced, r.Other, r.Forced = r.Reproduced+o.Reproduced, r.Other+o.Other, r.Forced+o.Forced
	r.Rewinds, r.Stops, r.Rewritten = r.Rewinds+o.Rewinds, r.Stops+o.Stops, r.Rewritten+o.Rewritten
	r.Failed, r.Idle, r.Calls = r.Failed+o.Failed, r.Idle+o.Idle, r.Calls+o.Calls
	r.US, r.Fuel = r.US+o.US, r.Fuel+o.Fuel
	r.OnceUS, r.OnceFuel = r.OnceUS+o.OnceUS, r.OnceFuel+o.OnceFuel
	if r.Error == "" {
		r.Error = o.Error
	}
}

// run is one text being tried.
type run struct {
	t       *Text
	r       Report
	pipe    *pipeline.Pipeline
	with    *sampling.Chain
	without *sampling.Chain
	scratch sampling.Scratch
	said    []byte
}

// Try runs a text through a plugin. services are what it may use beside the text; a nil
// config is all defaults. A failure of the plugin is part of the report, the error is of
// the text, or ctx's.
func Try(ctx context.Context, p *host.Plugin, config []byte, services host.Services, t *Text) (*Report, error) {
	if t.Params.Vocab <= 0 {
		return nil, errors.New("tryout: the vocabulary is not known")
	}
	u := &run{t: t, r: Report{Texts: 1, Tokens: len(t.Tokens)}}
	plugins := t.Params
	plugins.Plugins = nil
	var err error
	if u.without, err = sampling.New(plugins); err != nil {
		return nil, err
	}
	err = u.open(ctx, p, config, services)
	defer u.pipe.Close()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		u.fail(err)
		u.account()
		return &u.r, nil
	}
	plugins.Plugins = u.pipe
	if u.with, err = sampling.New(plugins); err != nil {
		return nil, err
	}
	err = u.steps()
	u.pipe.End(abi.StopStop)
	u.account()
	return &u.r, err
}

// account takes in what the plugin did and cost.
func (u *run) account() {
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	for _, r := range u.pipe.Reports() {
		u.r.Calls, u.r.US, u.r.Fuel = u.r.Calls+r.Calls, u.r.US+us(r.Time), u.r.Fuel+r.Fuel
		u.r.OnceUS, u.r.OnceFuel = u.r.OnceUS+us(r.OnceTime), u.r.OnceFuel+r.OnceFuel
		u.r.Rewritten += r.Rewritten
		if r.Outcome == pipeline.OutcomeIdle {
			u.r.Idle++
		}
		if r.Error != nil && u.r.Failed == 0 { // at the end of the text
			u.fail(r.Error)
		}
	}
}

func (u *run) fail(err error) {
	u.r.Failed, u.r.Error = 1, err.Error()
}

// open opens the plugin and shows it the prompt. There is a pipeline whatever went wrong.
func (u *run) open(ctx context.Context, p *host.Plugin, config []byte, services host.Services) (err error) {
	t := u.t
	services.Text = func(int) []byte { return u.said }
	services.Clock = func() int64 { return 0 }
	services.Meta = func(string, []byte) {}
	spec := pipeline.Spec{Manifest: p.Manifest(), Hash: p.Hash(), OnError: pipeline.Fail, Open: func(spent pipeline.Spent) (pipeline.Instance, error) {
		in, err := p.Open(ctx, host.Open{
			Config: config,
			Request: host.Request{
				Temperature: t.Params.Temperature, TopK: t.Params.TopK, TopP: t.Params.TopP, MinP: t.Params.MinP,
				PresencePenalty: t.Params.PresencePenalty, FrequencyPenalty: t.Params.FrequencyPenalty,
				MaxTokens: t.MaxTokens, Seed: uint64(t.Params.Seed), Stream: true,
			},
			Model:  host.Model{Name: t.Model, Vocab: t.Params.Vocab, Context: t.Context},
			Prompt: len(t.Prompt), Text: t.PromptText, Services: services, Spent: spent,
		})
		if in == nil {
			return nil, err
		}
		return in, err
	}}
	u.pipe, err = pipeline.New(pipeline.Options{
		Plugins: []pipeline.Spec{spec}, Vocab: t.Params.Vocab, Seed: uint64(t.Params.Seed), Temperature: t.Params.Temperature,
		Max: max(t.MaxTokens, len(t.Tokens)), Now: time.Now, Tokenize: func(string) ([]int32, error) { return t.Prompt, nil },
	})
	if err != nil {
		return err
	}
	// What it makes of the prompt is not looked at: the text came of the one that was sent.
	if _, err := u.pipe.Prompt(t.PromptText, t.Prompt); err != nil {
		return err
	}
	u.pipe.Begin(t.Prompt)
	return nil
}

// steps goes through the text. The error is of the text.
func (u *run) steps() error {
	for step, token := range u.t.Tokens {
		in, seen, err := u.t.Input(step)
		if err != nil {
			return err
		}
		if stopped, err := u.step(step, token, in, seen); err != nil || stopped {
			if err != nil {
				u.fail(err)
			} else if step+1 < len(u.t.Tokens) {
				u.r.Stops++
			}
			return nil
		}
	}
	return nil
}

// step chooses a token with the plugin and without it. The error is the plugin's.
func (u *run) step(step int, token Token, in sampling.Input, seen bool) (stopped bool, err error) {
	if err := u.pipe.Plan(); err != nil {
		return false, err
	}
	if u.pipe.Stopped() != 0 {
		return true, nil
	}
	position := len(u.t.Prompt) + step
	id, forced := u.pipe.NextForced()
	if forced {
		u.r.Forced++
	}
	if seen {
		u.r.Seen++
		plain, err := u.without.Choose(&in, position, &u.scratch)
		if err == nil && plain.ID == token.ID {
			u.r.Reproduced++
			if !forced {
				with, err := u.with.Choose(&in, position, &u.scratch)
				if err != nil {
					return false, err
				}
				id = with.ID
			}
			if id != token.ID {
				u.r.Other++
			}
		}
	}
	u.with.Accept(token.ID)
	u.without.Accept(token.ID)
	v, err := u.pipe.Accept(token.ID)
	if err != nil {
		return false, err
	}
	u.said = append(u.said, token.Text...)
	if v.Rewind == 0 && v.Stop == 0 && token.Text != "" {
		if _, v, err = u.pipe.Text([]byte(token.Text), step+1 == len(u.t.Tokens)); err != nil {
			return false, err
		}
	}
	if v.Rewind > 0 {
		// The text would have gone another way from here on.
		u.r.Rewinds++
		return false, u.goOn(v.Rewind, step)
	}
	return v.Stop != 0, nil
}

// goOn takes tokens back, as the plugin asked for, and lets the same ones come again: the
// text that was logged is the only one there is.
func (u *run) goOn(n, step int) error {
	if err := u.pipe.Rewind(n); err != nil {
		return err
	}
	for i := step + 1 - n; i <= step; i++ {
		v, err := u.pipe.Accept(u.t.Tokens[i].ID)
		if err != nil {
			return err
		}
		if v.Rewind > 0 {
			return u.pipe.Rewind(0)
		}
	}
	return nil
}

// Alternative is a token of which the log kept the log-probability.
type Alternative struct {
	ID      int32
	Logprob float64
}

// FromAlternatives writes what is known of a step into row, [vocabulary]: the tokens that
// the log kept at their log-probabilities, and the rest of the mass spread evenly over all
// others, none of them above the least that is known.
func FromAlternatives(row []float32, known []Alternative) sampling.Input {
	mass, least := 0.0, 0.0
	named := map[int32]bool{}
	in := sampling.Input{Row: row, Max: float32(math.Inf(-1))}
	for _, a := range known {
		if named[a.ID] || a.ID < 0 || int(a.ID) >= len(row) {
			continue
		}
		named[a.ID] = true
		mass += math.Exp(a.Logprob)
		least = min(least, a.Logprob)
	}
	rest := float32(math.Inf(-1))
	if others := len(row) - len(named); others > 0 && mass < 1 {
		rest = float32(min(math.Log((1-mass)/float64(others)), least))
	}
	for i := range row {
		row[i] = rest
	}
	for _, a := range known {
		if named[a.ID] {
			row[a.ID] = float32(a.Logprob)
			if c := float32(a.Logprob); c > in.Max || c == in.Max && a.ID < in.Best {
				in.Best, in.Max = a.ID, c
			}
		}
	}
	in.LogSumExp = float32(float64(in.Max) + math.Log(rowstats.ScanMass(row, in.Max).Sum))
	return in
}
