package main

import (
	"context"

	"ganglion/appliance"
	"ganglion/web"
)

// completer makes the service a web.Completer: the interface wants its own
// interface type as the result.
type completer struct{ service *appliance.Service }

func (c completer) Start(ctx context.Context, r *appliance.Request) (web.Completion, error) {
	run, err := c.service.Start(ctx, r)
	if err != nil {
		return nil, err // a nil *Completion in the interface would not be nil
	}
	return run, nil
}
