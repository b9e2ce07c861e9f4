package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

func newLogits(e *env, s *settings) *cobra.Command {
	var tokens, out string
	c := &cobra.Command{
		Use:   "logits --tokens 1,2,3 --out FILE",
		Short: "Write the float32 logits after each of the given tokens",
		Long:  "Writes [tokens][vocabulary] little-endian float32: row i holds the logits after tokens 0 to i.",
		Args:  noArgs("name the ids with --tokens 1,2,3"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokens == "" || out == "" {
				return fail(exitUsage, "for example --tokens 2,818,5279 --out logits.f32", "--tokens and --out are needed")
			}
			s.alone = true
			m, err := s.open(cmd.Context(), 1)
			if err != nil {
				return err
			}
			defer m.Close()
			ids, err := parseTokens(tokens, m.Info().Vocab)
			if err != nil {
				return err
			}
			if n := m.Info().Context; len(ids) > n {
				return fail(exitUsage, "raise --context", "%d tokens do not fit the context of %d", len(ids), n)
			}
			if out == "-" {
				return writeLogits(e.stdout, m, ids)
			}
			return writeFile(out, func(w io.Writer) error { return writeLogits(w, m, ids) })
		},
	}
	c.Flags().StringVar(&tokens, "tokens", "", "token `IDS`, separated by commas")
	c.Flags().StringVar(&out, "out", "", "`FILE` to write; - is the standard output")
	s.modelFlags(c)
	s.loraFlag(c)
	return c
}

// writeFile makes a file of what write writes; of a failed one nothing is left.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// writeLogits runs the tokens through a slot and writes every row of logits.
func writeLogits(out io.Writer, m *closingEngine, ids []int32) error {
	w := bufio.NewWriter(out)
	slot, err := m.cold()
	if err != nil {
		return err
	}
	defer m.Release(slot)
	const chunk = 16 // rows of the whole vocabulary that are held at a time
	for part := range slices.Chunk(ids, chunk) {
		rows := make([]engine.Row, len(part))
		for i, id := range part {
			rows[i] = engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}}
		}
		heads, err := m.Run(rows)
		if err != nil {
			return err
		}
		for _, h := range heads {
			if err := binary.Write(w, binary.LittleEndian, h.Row); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
