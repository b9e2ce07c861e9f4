package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
	"ganglion/gpu/tokenizer"
	"ganglion/plugins/abi"
	"ganglion/plugins/host"
	"ganglion/plugins/sampling"
	"ganglion/plugins/tryout"
	"ganglion/storage"
)

func newPluginTry(e *env, s *settings) *cobra.Command {
	var asJSON, withModel bool
	var config string
	var last int
	c := &cobra.Command{
		Use:   "try [flags] FILE",
		Short: "Run logged requests through a plugin and say what it would have changed",
		Long: "Runs the latest requests of the log through a plugin, token by token, with the text that\n" +
			"was made as its past, and tells how often another token would have come and what that\n" +
			"costs. Without --with-model it looks at the alternatives that the log kept (requests with\n" +
			"logprobs): these tokens are exact, the tail below them is spread evenly. With --with-model the model computes all logits again, which is exact where\n" +
			"model, backend and numerics are those of then; \"reproduced\" says for how many tokens it is.",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 1 {
				return fail(exitUsage, "", "--last %d is less than 1", last)
			}
			file, err := readPlugin(args[0])
			if err != nil {
				return err
			}
			p, end, err := s.openPlugin(cmd.Context(), file, s.pluginHost(e.logger()))
			if err != nil {
				return err
			}
			defer end()
			full, err := p.Manifest().Schema.Fill([]byte(config))
			if err != nil {
				return fail(exitUsage, "", "--plugin-config: %v", err)
			}
			log, err := s.readLog(e.logger())
			if err != nil {
				return err
			}
			defer log.Close()
			t, err := s.newTrial(cmd.Context(), p, full, withModel)
			if err != nil {
				return err
			}
			defer t.close()
			if err := t.all(cmd.Context(), log, last); err != nil {
				return err
			}
			if asJSON {
				return e.json(t.result())
			}
			return t.print(e)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&withModel, "with-model", false, "compute the logits again instead of looking at those that the log kept")
	c.Flags().StringVar(&config, "plugin-config", "", "configuration of the plugin, a `JSON` object")
	c.Flags().IntVar(&last, "last", 100, "the latest `N` requests")
	s.modelFlags(c)
	return c
}

// trial is a plugin being tried on the log.
type trial struct {
	s      *settings
	p      *host.Plugin
	config []byte
	vocab  *tokenizer.Tokenizer // of the model; nil without one
	hash   string               // of the model
	m      *closingEngine       // nil: what the log kept is looked at

	sum     tryout.Report
	skipped map[string]int // why requests were left out
}

func (s *settings) newTrial(ctx context.Context, p *host.Plugin, config []byte, withModel bool) (*trial, error) {
	if m := p.Manifest(); m.Can(abi.CapAuxSeq) {
		return nil, fail(exitUsage, "`ganglion plugin run` tries it on one prompt", "plugin %s has sequences beside the text, of which the log holds nothing", m.Name)
	}
	t := &trial{s: s, p: p, config: config, skipped: map[string]int{}}
	found, err := s.modelFile(ctx)
	if err != nil && withModel {
		return nil, err
	}
	if err != nil {
		s.e.note("no model was found: the plugin is told nothing of the vocabulary")
		return t, nil
	}
	f, err := s.openFile(found)
	if err != nil {
		return nil, err
	}
	t.hash = f.Hash()
	v, err := tokenizer.New(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, modelError(err)
	}
	t.vocab = v
	if m := p.Manifest(); !m.FitsTokenizer(v.Family()) {
		return nil, fail(exitUsage, "", "plugin %s is for tokenizers of kind %s, the model's is %s", m.Name, strings.Join(m.Tokenizers, ", "), v.Family())
	}
	if withModel {
		if t.m, err = s.open(ctx, 1); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *trial) close() {
	if t.m != nil {
		_ = t.m.Close() // nothing was written
	}
}

// all tries the latest requests.
func (t *trial) all(ctx context.Context, log *storage.Log, last int) error {
	rows, err := records(ctx, log, appliance.RecordQuery{}, last)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := log.Get(ctx, rows[i].ID)
		if err != nil {
			return err
		}
		if r == nil {
			continue // it was deleted meanwhile
		}
		if why, err := t.one(ctx, r); err != nil {
			return err
		} else if why != "" {
			t.skipped[why]++
		}
	}
	return nil
}

// one tries a request; why says why it was left out.
func (t *trial) one(ctx context.Context, r *appliance.Record) (why string, err error) {
	if len(r.Tokens) == 0 {
		return "no token is in the log", nil
	}
	text, err := textOf(r)
	if err != nil {
		return err.Error(), nil
	}
	services := host.Services{}
	known := t.vocab != nil && (r.ModelHash == "" || r.ModelHash == t.hash)
	if known {
		services.Vocab = new(plugins).vocabulary(t.vocab, t.hash)
		text.Params.Vocab, text.Params.Suppressed = t.vocab.VocabSize(), t.vocab.Suppressed()
	}
	if t.m != nil {
		if why := t.fromModel(r, text); why != "" {
			return why, nil
		}
		slot, err := t.m.cold()
		if err != nil {
			return "", err
		}
		defer t.m.Release(slot)
		text.Input = (&replay{m: t.m, slot: slot, text: text, chunk: max(t.m.Info().MaxRows, 1)}).input
	} else {
		if !fromLog(r, text) {
			return "the log kept no alternatives: --with-model computes them", nil
		}
		t.promptOf(r, text, known)
	}
	report, err := tryout.Try(ctx, t.p, t.config, services, text)
	if err != nil {
		return "", err
	}
	t.sum.Add(report)
	return "", nil
}

// asNumber is the number that a logged parameter holds.
func asNumber(v any) (float64, bool) {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		return f, err == nil
	}
	f, ok := v.(float64)
	return f, ok
}

// textOf makes a text of a record.
func textOf(r *appliance.Record) (*tryout.Text, error) {
	t := &tryout.Text{Model: r.Model, PromptText: r.Prompt, Params: sampling.Params{Temperature: 1, TopP: 1, Seed: r.Seed}}
	for _, tok := range r.Tokens {
		t.Tokens = append(t.Tokens, tryout.Token{ID: tok.ID, Text: tok.Text})
	}
	p := &t.Params
	for _, v := range r.Params {
		n, isNumber := asNumber(v.Value)
		switch {
		case strings.HasPrefix(v.Name, "plugins["):
			return nil, errors.New("it ran plugins itself")
		case strings.HasPrefix(v.Name, "lora[") && n != 0:
			return nil, errors.New("it ran adapters")
		case v.Name == "logit_bias":
			bias, _ := v.Value.(map[string]any)
			for key, value := range bias {
				id, err := strconv.Atoi(key)
				b, ok := asNumber(value)
				if err != nil || !ok {
					return nil, errors.New("its logit_bias cannot be read")
				}
				p.Bias = append(p.Bias, sampling.Bias{ID: int32(id), Value: float32(b)})
			}
		case !isNumber:
		case v.Name == "max_completion_tokens":
			t.MaxTokens = int(n)
		case v.Name == "temperature":
			p.Temperature = n
		case v.Name == "top_p":
			p.TopP = n
		case v.Name == "min_p":
			p.MinP = n
		case v.Name == "top_k":
			p.TopK = int(n)
		case v.Name == "presence_penalty":
			p.PresencePenalty = n
		case v.Name == "frequency_penalty":
			p.FrequencyPenalty = n
		}
	}
	return t, nil
}

// fromLog lets a text be seen as the log kept it; false where it kept nothing.
func fromLog(r *appliance.Record, t *tryout.Text) bool {
	most, kept := int32(0), false
	for _, tok := range r.Tokens {
		most = max(most, tok.ID)
		for _, a := range tok.Top {
			most, kept = max(most, a.ID), true
		}
	}
	if !kept {
		return false
	}
	if t.Params.Vocab == 0 {
		t.Params.Vocab = int(most) + 1
	}
	row := make([]float32, t.Params.Vocab)
	var known []tryout.Alternative
	t.Input = func(step int) (sampling.Input, bool, error) {
		tok := &r.Tokens[step]
		if len(tok.Top) == 0 {
			return sampling.Input{}, false, nil
		}
		known = append(known[:0], tryout.Alternative{ID: tok.ID, Logprob: tok.Logprob})
		for _, a := range tok.Top {
			known = append(known, tryout.Alternative{ID: a.ID, Logprob: a.Logprob})
		}
		return tryout.FromAlternatives(row, known), true, nil
	}
	return true
}

// promptOf finds the prompt's tokens where the model's vocabulary is known. Else plugins
// see as many tokens 0: draws are by the place in the sequence, so their number counts.
func (t *trial) promptOf(r *appliance.Record, text *tryout.Text, known bool) {
	text.Prompt = make([]int32, r.PromptTokens)
	if known {
		if ids := t.encode(r.Prompt); len(ids) == r.PromptTokens {
			text.Prompt = ids
		}
	}
}

func (t *trial) encode(prompt string) []int32 {
	return t.vocab.Encode(prompt, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: t.s.ParseSpecial})
}

// fromModel finds the prompt's tokens; why says why the model cannot make the text again.
func (t *trial) fromModel(r *appliance.Record, text *tryout.Text) (why string) {
	info := t.m.Info()
	if r.ModelHash != "" && r.ModelHash != t.hash {
		return "another model made it"
	}
	text.Prompt = t.encode(r.Prompt)
	switch {
	case len(text.Prompt) == 0 || len(text.Prompt) != r.PromptTokens:
		return "the log does not hold its prompt as it was"
	case len(text.Prompt)+len(text.Tokens) > info.Context:
		return "it does not fit the context"
	}
	text.Context = info.Context
	return ""
}

// replay lets the model read a text again and hands out the rows of its logits.
type replay struct {
	m     *closingEngine
	slot  int
	text  *tryout.Text
	chunk int

	read  int // tokens of prompt and text that the model read
	first int // step of the first row
	rows  []engine.Head
}

const replayRows = 16 // rows of the whole vocabulary that are held at a time

func (r *replay) input(step int) (sampling.Input, bool, error) {
	for step >= r.first+len(r.rows) {
		if err := r.next(); err != nil {
			return sampling.Input{}, false, err
		}
	}
	h := &r.rows[step-r.first]
	return sampling.Input{Row: h.Row, Best: h.Best, Max: h.Max, LogSumExp: h.LogSumExp}, true, nil
}

// next reads on: the prompt without its last token, then that and the text.
func (r *replay) next() error {
	prompt := len(r.text.Prompt)
	var rows []engine.Row
	if r.read < prompt-1 {
		n := min(r.chunk, prompt-1-r.read)
		for _, id := range r.text.Prompt[r.read : r.read+n] {
			rows = append(rows, engine.Row{Slot: r.slot, Token: id})
		}
		r.read += n
		_, err := r.m.Run(rows)
		return err
	}
	r.first = r.read - (prompt - 1)
	for n := min(replayRows, r.chunk, prompt+len(r.text.Tokens)-r.read); n > 0; n-- {
		id := r.text.Prompt[prompt-1]
		if r.read >= prompt {
			id = r.text.Tokens[r.read-prompt].ID
		}
		rows = append(rows, engine.Row{Slot: r.slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}})
		r.read++
	}
	if len(rows) == 0 {
		return errors.New("the text is at its end")
	}
	heads, err := r.m.Run(rows)
	r.rows = heads
	return err
}

// trialResult is what `ganglion plugin try --json` prints.
type trialResult struct {
	Plugin  string          `json:"plugin"`
	Version string          `json:"version"`
	Hash    string          `json:"sha256"`
	Config  json.RawMessage `json:"config"`
	Exact   bool            `json:"exact"` // the model computed all logits again
	tryout.Report
	Skipped map[string]int `json:"skipped"`
}

func (t *trial) result() trialResult {
	m := t.p.Manifest()
	return trialResult{Plugin: m.Name, Version: m.Version, Hash: t.p.Hash(), Config: t.config, Exact: t.m != nil, Report: t.sum, Skipped: t.skipped}
}

func (t *trial) print(e *env) error {
	m, r := t.p.Manifest(), &t.sum
	share := func(part, all int) string {
		return fmt.Sprintf("%d (%.1f %%)", part, 100*float64(part)/float64(max(all, 1)))
	}
	table := [][]string{
		{"plugin", identity(m.Name, m.Version, t.p.Hash())},
		{"requests", strconv.Itoa(r.Texts)},
		{"tokens", strconv.Itoa(r.Tokens)},
		{"seen", share(r.Seen, r.Tokens)},
		{"reproduced", share(r.Reproduced, r.Seen)},
		{"another token", share(r.Other, r.Reproduced)},
		{"forced", strconv.Itoa(r.Forced)},
		{"taken back", strconv.Itoa(r.Rewinds)},
		{"ended early", strconv.Itoa(r.Stops)},
		{"texts changed", strconv.Itoa(r.Rewritten)},
		{"not interested", strconv.Itoa(r.Idle)},
		{"failed", strconv.Itoa(r.Failed)},
		{"cost", fmt.Sprintf("%.2f µs and %d fuel a token", r.US/float64(max(r.Tokens, 1)), r.Fuel/int64(max(r.Tokens, 1)))},
		{"beside tokens", fmt.Sprintf("%.2f µs and %d fuel a request", r.OnceUS/float64(max(r.Texts, 1)), r.OnceFuel/int64(max(r.Texts, 1)))},
	}
	if r.Error != "" {
		table = append(table, []string{"first failure", r.Error})
	}
	for why, n := range t.skipped {
		table = append(table, []string{"left out", fmt.Sprintf("%d: %s", n, why)})
	}
	return e.table(table)
}
