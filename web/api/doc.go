// Package api is the wire format: our OpenAPI document, the types of the answers,
// and the reader of requests.
//
// openapi.yaml is the contract of POST /v1/completions exactly, with every
// extension marked by x-extension, and the other routes. [Document] is the same
// as JSON. Decode turns a body into a [CompletionRequest]: it checks the shape of
// every field (its JSON type, whole numbers, legal text) and leaves the values to
// appliance, which knows the model. The rules it holds to:
//
//   - null is as if absent; unknown fields have no effect but must be JSON; names
//     match exactly, case included; two equal names in one object are an error.
//   - An integer is any whole-valued number (8, 8.0, 8e0), read without loss; a
//     number in a string is a string. A max_completion_tokens beyond 64 bits is
//     more than any room; every other integer beyond them is an error.
//   - A string must be Unicode text: a \uD800–\uDFFF escape without its other half
//     is an error (invalid_utf8) in a field that is read. U+0000 is a character.
//   - An error names the field and never repeats text of the request: at most a
//     number of 64 characters or the name of a known field.
//
// The package imports appliance, appliance/media and appliance/jsontext.
package api
