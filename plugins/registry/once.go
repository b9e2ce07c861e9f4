package registry

import (
	"context"
	"errors"

	"ganglion/plugins/host"
)

// Load takes a file through the signature policy and the pipeline and gives it no name in
// the table. It is a script where script is set. The caller closes the plugin.
func (r *Registry) Load(ctx context.Context, file []byte, script bool) (*host.Plugin, error) {
	place := "a request.wasm"
	if script {
		if place = "a request.js"; r.o.Script == nil {
			return nil, errors.New("registry: scripts are not taken here")
		}
	}
	e, err := r.load(ctx, file, place, false)
	if err != nil {
		return nil, err
	}
	return e.plugin, nil
}
