// Package jsontext reads JSON as RFC 8259 writes it, and nothing else.
//
// Go's encoding/json is too kind for a public edge: it replaces ill-formed UTF-8,
// matches member names without case, keeps the last of two equal names, and
// refuses 8.0 where an integer is wanted. Here [Parse] checks a whole text once
// (syntax, UTF-8, equal names, depth) without building a tree, and a [Value] is a
// view into the checked text that is decoded only where it is used. A body of
// 64 MiB therefore costs no more memory than itself, whatever it holds.
//
// The package owns no policy: which fields exist and what they mean is the
// business of its callers. It imports the standard library alone.
package jsontext
