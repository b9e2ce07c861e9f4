package main

import (
	"context"
	"errors"
	"fmt"

	"ganglion/appliance"
	"ganglion/gpu"
	"ganglion/gpu/encoder"
	"ganglion/gpu/ops"
)

// withEncoder joins a model with the encoder that the settings name, or that is found with
// the model. One that was found and does not fit is left out with a word; one that was
// named is an error. After an error the model still belongs to the caller.
func (s *settings) withEncoder(ctx context.Context, m appliance.Model, found appliance.Found, b ops.Backend) (appliance.Model, error) {
	at, ok, err := appliance.FindEncoder(found, s.MMProj)
	if err != nil || !ok {
		return m, err
	}
	e, err := s.openEncoder(ctx, at, m, b)
	if err != nil && !at.Named && ctx.Err() == nil {
		s.e.note("the encoder %s is left out: %v", at.Path, err)
		return m, nil
	}
	if err != nil {
		return nil, modelError(fmt.Errorf("mmproj: %w", err))
	}
	i := e.Info()
	kinds := "pictures"
	switch {
	case i.Picture == "":
		kinds = "sound"
	case i.Sound != "":
		kinds = "pictures and sound"
	}
	s.e.note("loaded the encoder %s for %s: %s", i.Name, kinds, i.Device)
	mode := fmt.Sprintf("%s numerics, %d tokens", s.Numerics, s.ImageTokens)
	return appliance.WithEncoder(m, appliance.FromEncoder(e, mode)), nil
}

// openEncoder loads an encoder file and holds it against a model.
func (s *settings) openEncoder(ctx context.Context, at appliance.EncoderFile, m appliance.Model, b ops.Backend) (*encoder.Encoder, error) {
	c := encoder.Config{Path: at.Path, Offset: at.Offset, Size: at.Size, Backend: b, Threads: s.Threads, MaxTokens: s.ImageTokens}
	if s.Numerics == "exact" {
		c.Numerics = ops.Exact
	}
	if o, ok := b.(*gpu.Opened); ok && !s.alone {
		next := o.Recovery()
		c.Recover = func(failure error, failures int) (ops.Backend, error) {
			b, err := next(failure, failures)
			if b != nil {
				s.e.note("the encoder goes on with %s: %v", b.Name(), failure)
			}
			return b, err
		}
	}
	e, err := encoder.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := e.Pair(m.Info().EmbedWidth); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}
