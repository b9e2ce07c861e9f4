package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

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
	media                   mediaFlags
}

func newRun(e *env, s *settings) *cobra.Command {
	var g generation
	c := &cobra.Command{
		Use:   "run [flags] [PROMPT]",
		Short: "Complete one prompt (argument or stdin) on the terminal",
		Long:  "Completes one prompt on the terminal. A line break at the end of the standard\ninput belongs to the shell and not to the prompt.",
		Args:  atMostOne("prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt, err := e.argOrStdin(args)
			if err != nil {
				return err
			}
			if len(args) == 0 || args[0] == "-" {
				prompt = strings.TrimSuffix(strings.TrimSuffix(prompt, "\n"), "\r")
			}
			config := s.service(nil, e.logger())
			slots, end, err := s.runPlugins(cmd.Context(), &config)
			if err != nil {
				return err
			}
			defer end()
			r, err := g.request(cmd, s, prompt)
			if err != nil {
				return err
			}
			return complete(cmd.Context(), e, s, r, config, slots, g.showStats)
		},
	}
	g.flags(c)
	s.modelFlags(c)
	s.guessFlags(c)
	s.loraFlag(c)
	s.pluginFlags(c)
	return c
}

// flags adds a flag for each field.
func (g *generation) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.Int64VarP(&g.maxTokens, "max-completion-tokens", "n", 0, "generate at most `N` tokens (default: the setting max-tokens, 512)")
	f.Float64Var(&g.temperature, "temperature", 0, "sampling temperature `T`; 0 is greedy (default: the model file's, else 1)")
	f.Float64Var(&g.topP, "top-p", 0, "nucleus sampling threshold `P` (default: the model file's, else 1)")
	f.Float64Var(&g.minP, "min-p", 0, "least probability `P` relative to the best token (default: the model file's, else 0)")
	f.Int64Var(&g.topK, "top-k", 0, "choose from the best `N` tokens; 0 is off (default: the model file's, else 0)")
	f.Int64Var(&g.seed, "seed", 0, "seed `N` of the draws (default: a random one)")
	f.StringArrayVar(&g.stop, "stop", nil, "`TEXT` that ends the completion; may be repeated")
	f.Float64Var(&g.presence, "presence-penalty", 0, "penalty `X` on tokens already generated, -2 to 2")
	f.Float64Var(&g.frequency, "frequency-penalty", 0, "penalty `X` for each time a token was generated, -2 to 2")
	f.BoolVar(&g.showStats, "stats", false, "print counts and speed to stderr")
	g.media.flags(f)
}

// request makes a request of the flags that were given.
func (g *generation) request(cmd *cobra.Command, s *settings, prompt string) (*appliance.Request, error) {
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
	var err error
	r.Media, err = g.media.read(&s.Settings)
	return r, err
}

func set[T any](given bool, field **T, value *T) {
	if given {
		*field = value
	}
}

// complete runs one request in this process and streams its text to stdout. slots are
// those of the request and of the sequences that its plugins may have beside it.
func complete(ctx context.Context, e *env, s *settings, r *appliance.Request, config appliance.Config, slots int, stats bool) error {
	m, err := s.open(ctx, slots)
	if err != nil {
		return err
	}
	films := s.filmEngine()
	defer films.Close() // after the service
	config.Film = films
	service, err := appliance.NewService(config)
	if err != nil {
		return errors.Join(usage(err), m.Close())
	}
	defer service.Close(context.WithoutCancel(ctx))
	guessed, err := s.withDraft(ctx, m.model(), m.backend, 1)
	if err != nil {
		return errors.Join(err, m.Close())
	}
	seeing, err := s.looking(ctx, r, guessed, m)
	if err != nil {
		return errors.Join(err, guessed.Close())
	}
	service.Use(seeing)
	run, err := service.Start(ctx, r)
	if err != nil {
		return err
	}
	defer run.Close()
	if err := e.stream(ctx, run); err != nil {
		return err
	}
	if stats {
		res := run.Result()
		e.note("%d prompt tokens, %d generated, %s, %.1f tokens/s, seed %d", res.Usage.PromptTokens, res.Usage.CompletionTokens, res.Finish,
			float64(res.Usage.CompletionTokens)/max(res.Timings.Decode.Seconds(), 1e-9), res.Seed)
	}
	if reports := run.Result().Plugins; len(reports) > 0 {
		e.note("%s", appliance.PluginSummary(reports))
	}
	return nil
}

// stream writes the text as it comes. A terminal gets no control characters that a
// model made up: they could change its title, its colours or its clipboard.
func (e *env) stream(ctx context.Context, run *appliance.Completion) error {
	for {
		chunk, err := run.Next(ctx)
		if e.stdoutTTY {
			chunk.Text = visible(chunk.Text)
			if err != nil {
				chunk.Text += "\n"
			}
		}
		if _, err := io.WriteString(e.stdout, chunk.Text); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// visible replaces control characters but line breaks and tabs.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
