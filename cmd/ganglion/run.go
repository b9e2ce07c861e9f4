package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ganglion/appliance"
)

// generation are the flags of `ganglion run`, named as the contract's fields.
type generation struct {
	maxTokens               int64
	temperature, topP, minP float64
	topK, seed              int64
	stop                    []string
	presence, frequency     float64
	showStats               bool
}

func newRun(e *env, s *settings) *cobra.Command {
	var g generation
	c := &cobra.Command{
		Use:   "run [PROMPT]",
		Short: "Complete one prompt (argument or stdin) on the terminal",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt, err := e.argOrStdin(args)
			if err != nil {
				return err
			}
			r := g.request(cmd, prompt)
			return complete(cmd.Context(), e, s, r, g.showStats)
		},
	}
	f := c.Flags()
	f.Int64VarP(&g.maxTokens, "max-completion-tokens", "n", 0, "most tokens to generate")
	f.Float64Var(&g.temperature, "temperature", 0, "sampling temperature; 0 is greedy")
	f.Float64Var(&g.topP, "top-p", 0, "nucleus sampling threshold")
	f.Float64Var(&g.minP, "min-p", 0, "least probability relative to the best token")
	f.Int64Var(&g.topK, "top-k", 0, "number of tokens to choose from; 0 is off")
	f.Int64Var(&g.seed, "seed", 0, "seed of the draws")
	f.StringArrayVar(&g.stop, "stop", nil, "text that ends the completion; may be given several times")
	f.Float64Var(&g.presence, "presence-penalty", 0, "penalty on tokens already generated")
	f.Float64Var(&g.frequency, "frequency-penalty", 0, "penalty per time a token was generated")
	f.BoolVar(&g.showStats, "stats", false, "print counts and speed to stderr")
	s.modelFlags(c)
	return c
}

// request makes a request of the flags that were given.
func (g *generation) request(cmd *cobra.Command, prompt string) *appliance.Request {
	r := &appliance.Request{ID: appliance.NewID(), Received: time.Now(), Route: "cli run", Prompt: prompt, Stop: g.stop, Stream: true}
	given := cmd.Flags().Changed
	set(given("max-completion-tokens"), &r.MaxTokens, &g.maxTokens)
	set(given("temperature"), &r.Temperature, &g.temperature)
	set(given("top-p"), &r.TopP, &g.topP)
	set(given("min-p"), &r.MinP, &g.minP)
	set(given("top-k"), &r.TopK, &g.topK)
	set(given("seed"), &r.Seed, &g.seed)
	set(given("presence-penalty"), &r.PresencePenalty, &g.presence)
	set(given("frequency-penalty"), &r.FrequencyPenalty, &g.frequency)
	return r
}

func set[T any](given bool, field **T, value *T) {
	if given {
		*field = value
	}
}

// complete runs one request in this process and streams its text to stdout.
func complete(ctx context.Context, e *env, s *settings, r *appliance.Request, stats bool) error {
	m, err := s.open(ctx, 1)
	if err != nil {
		return err
	}
	service, err := appliance.NewService(s.service(nil))
	if err != nil {
		return errors.Join(err, m.Close())
	}
	defer service.Close(context.WithoutCancel(ctx))
	service.Use(m.model())
	run, err := service.Start(ctx, r)
	if err != nil {
		return err
	}
	defer run.Close()
	for {
		chunk, err := run.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if _, err := io.WriteString(e.stdout, chunk.Text); err != nil {
			return err
		}
	}
	if e.stdoutTTY {
		fmt.Fprintln(e.stdout)
	}
	if stats {
		res := run.Result()
		e.note("%d prompt tokens, %d generated, %s, %.1f tokens/s, seed %d", res.Usage.PromptTokens, res.Usage.CompletionTokens, res.Finish,
			float64(res.Usage.CompletionTokens)/max(res.Timings.Decode.Seconds(), 1e-9), res.Seed)
	}
	return nil
}
