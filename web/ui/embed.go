// Package ui holds the web page: plain ES modules, style sheets and their vendored
// libraries, embedded as they lie here. There is no build step, so `go build` never
// needs Node. The page loads nothing from another host and runs under the content
// policy `default-src 'self'`: no inline script, no inline style. The package has no
// behaviour of its own and imports nothing of the module; package web serves it.
package ui

import "embed"

// Files is the page with index.html at its root. Tests and tool files are left out.
// It is read-only and safe for concurrent use.
//
//go:embed index.html favicon.svg css js vendor/*.js vendor/*.css vendor/*.txt vendor/README.md
var Files embed.FS
