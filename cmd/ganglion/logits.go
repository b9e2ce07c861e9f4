package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"

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
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokens == "" || out == "" {
				return fail(exitUsage, "for example --tokens 2,818,5279 --out logits.f32", "--tokens and --out are needed")
			}
			m, err := s.open(cmd.Context(), 1)
			if err != nil {
				return err
			}
			defer m.Close()
			ids, err := parseTokens(tokens, m.Info().Vocab)
			if err != nil {
				return err
			}
			return writeLogits(m.Engine, ids, out)
		},
	}
	c.Flags().StringVar(&tokens, "tokens", "", "token ids, separated by commas")
	c.Flags().StringVar(&out, "out", "", "file to write")
	s.modelFlags(c)
	return c
}

// writeLogits runs the tokens through a slot and writes every row of logits.
func writeLogits(m *engine.Engine, ids []int32, path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	slot, _, ok := m.Acquire(ids)
	if !ok {
		return errors.New("no free slot")
	}
	defer m.Release(slot)
	const chunk = 16
	for from := 0; from < len(ids); from += chunk {
		var rows []engine.Row
		for _, id := range ids[from:min(from+chunk, len(ids))] {
			rows = append(rows, engine.Row{Slot: slot, Token: id, Want: true, Read: ops.Want{Kind: ops.WantRow}})
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
