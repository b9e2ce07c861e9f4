// Package ganglion holds the text of the licence that this module comes under. The
// program is cmd/ganglion.
package ganglion

import _ "embed"

// License is the Apache License 2.0.
//
//go:embed LICENSE
var License string
