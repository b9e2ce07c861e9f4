package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
)

// loraFlag adds the flag of verbs that compute with adapters.
func (s *settings) loraFlag(c *cobra.Command) {
	s.addFlags(c.Flags(), func(f string) bool { return f == "lora" })
}

// checkAdapters opens the files that --lora names and closes them: what is no file of
// this kind is told at once. Whether they fit the model is found out when it is loaded.
func (s *settings) checkAdapters() error {
	for _, l := range s.LoRA {
		f, err := gguf.Open(l.Path)
		if err != nil {
			return modelError(fmt.Errorf("adapter %q: %w", l.Name(), err))
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// noteAdapters tells which adapters were loaded, and what of them is not applied.
func (s *settings) noteAdapters(info engine.Info) {
	var names []string
	for i, a := range info.Adapters {
		names = append(names, fmt.Sprintf("%s (%g)", a.Name, s.LoRA[i].Scale))
		if a.Ignored > 0 {
			s.e.note("adapter %s holds %d norm tensors, which are not applied", a.Name, a.Ignored)
		}
	}
	if len(names) > 0 {
		s.e.note("adapters: %s", strings.Join(names, ", "))
	}
}

// cold takes a slot for a sequence that shares nothing with earlier ones, with the
// adapters that act by default.
func (c *closingEngine) cold() (slot int, err error) {
	slot, _, ok := c.Acquire([]int32{-1, -1}, engine.Salt(c.adapters))
	if !ok {
		return 0, errors.New("no free slot")
	}
	if err := c.SetAdapters(slot, c.adapters); err != nil {
		c.Release(slot)
		return 0, err
	}
	return slot, nil
}
