// Package web speaks HTTP: the completion API, health, metrics, the log, models,
// and the page.
//
// A handler decodes, validates, calls appliance, and encodes; what a request means
// is decided below. The package promises: every refusal is a JSON error and comes
// before the first byte of a stream; every stream ends with its end mark; nothing
// is served to a host name or an origin that is not listed; no text of a request
// reaches a console log; and no time limit counts while the server is the one at
// work.
//
// routes.go holds the table of routes, errors.go the one from codes to statuses,
// api/openapi.yaml the document of all of it. The package may not import storage,
// plugins or gpu.
package web
