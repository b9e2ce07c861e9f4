package main

import "context"

// desktop is what a double-click starts: the page in the browser. A second start
// opens the page of the first and ends.
func desktop(ctx context.Context, e *env, s *settings) error {
	path := instancePath(s.paths.State)
	if in, ok := running(ctx, path); ok {
		e.note("already running at %s", in.URL)
		return e.openBrowser(ctx, in.page())
	}
	return serve(ctx, e, s, newInstance(path))
}
