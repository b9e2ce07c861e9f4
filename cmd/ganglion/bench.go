package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// benchResult is what `ganglion bench` measures; rates are in tokens per second,
// the median of the repetitions.
type benchResult struct {
	Model       string  `json:"model"`
	Backend     string  `json:"backend"`
	Device      string  `json:"device"`
	Numerics    string  `json:"numerics"`
	Threads     int     `json:"threads"`
	LoadMS      float64 `json:"load_ms"`
	Prompt      int     `json:"prompt_tokens"`
	Generated   int     `json:"generated_tokens"`
	Sequences   int     `json:"sequences"`
	Prefill     float64 `json:"prefill_tokens_per_second"`
	Decode      float64 `json:"decode_tokens_per_second"`
	PrefillCPU  float64 `json:"prefill_cpu_ms_per_token"` // processor time of the process; 0 where it is not known
	DecodeCPU   float64 `json:"decode_cpu_ms_per_token"`
	DecodeBatch float64 `json:"batch_decode_tokens_per_second,omitempty"`
	Read        float64 `json:"read_gigabytes_per_second"` // what the threads can read from memory together

	Guessing *guessResult  `json:"guessing,omitempty"` // nil with --speculate off
	GPU      *deviceResult `json:"gpu,omitempty"`      // nil on the processor
}

func newBench(e *env, s *settings) *cobra.Command {
	var asJSON, timeKernels bool
	var synthetic string
	var prompt, generate, repeat, sequences int
	c := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure prefill and decode speed on this machine",
		Long:  "Measures prefill and decode speed. On a GPU (--backend, --device) it also prints the\ndevice, its driver, limits and abilities, how fast it copies memory and what each\nkernel takes: with --json, all that is needed to compare it with another one.",
		Args:  noArgs("name the model with --model FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if prompt < 1 || generate < 1 || repeat < 1 || sequences < 1 {
				return fail(exitUsage, "", "--prompt, --generate, --repeat and --sequences must be at least 1")
			}
			if err := s.synthesise(synthetic); err != nil {
				return err
			}
			start := time.Now()
			s.alone = true
			m, err := s.open(cmd.Context(), sequences)
			if err != nil {
				return err
			}
			closing := m.Close
			defer func() { closing() }()
			info := m.Info()
			r := benchResult{Model: info.Name, Backend: info.Backend, Device: info.Device, Numerics: info.Numerics, Threads: info.Threads,
				LoadMS: float64(time.Since(start).Microseconds()) / 1000, Prompt: prompt, Generated: generate, Sequences: sequences}
			if prompt+generate > info.Context {
				return fail(exitUsage, "raise --context, or lower --prompt and --generate", "%d prompt and %d generated tokens do not fit the context of %d", prompt, generate, info.Context)
			}
			if err := measure(cmd.Context().Err, m, &r, repeat); err != nil {
				return err
			}
			r.Read = readRate(r.Threads)
			if source := s.Speculation(); source != appliance.SpeculateOff {
				joined, err := s.withDraft(cmd.Context(), m.model(), m.backend, sequences)
				if err != nil {
					return err
				}
				service, err := appliance.NewService(s.service(nil, e.logger()))
				if err != nil {
					return usage(err)
				}
				closing = func() error { return service.Close(context.WithoutCancel(cmd.Context())) }
				service.Use(joined)
				if r.Guessing, err = measureGuesses(cmd.Context(), service, joined, source, generate, repeat); err != nil {
					return err
				}
			}
			if d, ok := m.backend.Device(); ok && timeKernels {
				if err := closing(); err != nil {
					return err
				}
				closing = func() error { return nil }
				if r.GPU, err = s.benchDevice(cmd.Context(), d, prompt); err != nil {
					return err
				}
			}
			if asJSON {
				return e.json(r)
			}
			fmt.Fprintf(e.stdout, "%s on %s (%s), %s, %d threads\nload      %8.0f ms\nprefill   %8.1f tokens/s (%d tokens)\ndecode    %8.1f tokens/s (%d tokens)\n",
				r.Model, r.Backend, r.Device, r.Numerics, r.Threads, r.LoadMS, r.Prefill, r.Prompt, r.Decode, r.Generated)
			fmt.Fprintf(e.stdout, "memory    %8.1f GB/s can be read by %d threads\n", r.Read, r.Threads)
			if sequences > 1 {
				fmt.Fprintf(e.stdout, "batch     %8.1f tokens/s (sum of %d sequences)\n", r.DecodeBatch, sequences)
			}
			if g := r.Guessing; g != nil {
				g.Repetitive.print(e.stdout, "guessed", "a repetitive text, "+string(g.Source))
				g.Other.print(e.stdout, "", "another text")
			}
			if r.GPU != nil {
				r.GPU.print(e.stdout, prompt)
			}
			return nil
		},
	}
	s.guessFlags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&timeKernels, "kernels", true, "on a GPU, measure the device by itself and each kernel too")
	c.Flags().StringVar(&synthetic, "synthetic", "", "write a llama of 1.1B random weights of this type (q4_0, q4_k, q8_0) to --model FILE first, unless the file is there")
	c.Flags().IntVarP(&prompt, "prompt", "p", 512, "prompt tokens to prefill")
	c.Flags().IntVarP(&generate, "generate", "n", 128, "tokens to decode")
	c.Flags().IntVarP(&repeat, "repeat", "r", 5, "repetitions; the median counts")
	c.Flags().IntVar(&sequences, "sequences", 1, "sequences that decode together")
	s.modelFlags(c)
	s.loraFlag(c)
	return c
}

// measure fills the rates in. stopped reports an interruption.
func measure(stopped func() error, m *closingEngine, r *benchResult, repeat int) error {
	var prefill, decode, batch, prefillCPU, decodeCPU []float64
	for i := range repeat + 1 { // the first round warms up
		if err := stopped(); err != nil {
			return err
		}
		start := processTime()
		p, err := timePrefill(m, r.Prompt, int32(i))
		if err != nil {
			return err
		}
		between := processTime()
		d, err := timeDecode(m, 1, r.Generated)
		if err != nil {
			return err
		}
		end := processTime()
		b := d
		if r.Sequences > 1 {
			if b, err = timeDecode(m, r.Sequences, r.Generated); err != nil {
				return err
			}
		}
		if i > 0 {
			prefill, decode, batch = append(prefill, p), append(decode, d), append(batch, b)
			prefillCPU = append(prefillCPU, 1000*(between-start).Seconds()/float64(r.Prompt))
			decodeCPU = append(decodeCPU, 1000*(end-between).Seconds()/float64(r.Generated))
		}
	}
	r.Prefill, r.Decode = median(prefill), median(decode)
	r.PrefillCPU, r.DecodeCPU = median(prefillCPU), median(decodeCPU)
	if r.Sequences > 1 {
		r.DecodeBatch = median(batch)
	}
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// benchToken spreads ids over the vocabulary so that no two rounds share a prefix.
func benchToken(m *closingEngine, round int32, i int) int32 {
	return int32((int64(round)*7919 + int64(i)*104729 + 13) % int64(m.Info().Vocab))
}

func timePrefill(m *closingEngine, n int, round int32) (float64, error) {
	slot, err := m.cold()
	if err != nil {
		return 0, err
	}
	defer m.Release(slot)
	rows := make([]engine.Row, n)
	for i := range rows {
		rows[i] = engine.Row{Slot: slot, Token: benchToken(m, round, i)}
	}
	rows[n-1].Want = true
	start := time.Now()
	for at := 0; at < n; at += m.Info().MaxRows {
		if _, err := m.Run(rows[at:min(at+m.Info().MaxRows, n)]); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

func timeDecode(m *closingEngine, sequences, n int) (float64, error) {
	rows := make([]engine.Row, sequences)
	for i := range rows {
		slot, err := m.cold()
		if err != nil {
			return 0, err
		}
		defer m.Release(slot)
		rows[i] = engine.Row{Slot: slot, Token: benchToken(m, int32(i), 1), Want: true, Read: ops.Want{Kind: ops.WantBest}}
	}
	start := time.Now()
	for range n {
		heads, err := m.Run(rows)
		if err != nil {
			return 0, err
		}
		for i, h := range heads {
			rows[i].Token = h.Best
		}
	}
	return float64(n*sequences) / time.Since(start).Seconds(), nil
}
