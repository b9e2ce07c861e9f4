// Package sdk builds plugins from source.
//
// The SDKs themselves are the folders c, rust, go, assemblyscript and js: a header or
// library, an example and a README each. The package carries them inside the binary, so
// that a plugin can be begun and built anywhere ([Build]).
//
// The package imports nothing of the project.
package sdk

import _ "embed"

//go:embed c/ganglion.h
var headerC []byte
