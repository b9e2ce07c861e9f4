// Package abi holds the numbers of the plugin interface, the manifest of a plugin and the
// schema of its configuration. ABI.md beside it is the contract with authors of plugins.
//
// The package knows no WebAssembly and no runtime. What it reads comes from strangers:
// every size is bounded before anything is built from it, and an error names the place in
// the text by its JSON pointer. It imports the standard library alone.
package abi
