// Package media reads the media fields of a request: images, audios, videos.
//
// It owns the way from a JSON value (base64, byte array, descriptor object) to
// checked bytes: what counts as an item, which alphabet, which kind of file, how
// large the file says it is. The kind is found from the bytes; what a request
// says about it matters only for samples without a header. Declared sizes are
// read from headers and checked before any decoder runs and, for base64, before
// the whole item is decoded, so a file of thirty bytes that declares four
// gigapixels costs thirty bytes.
//
// Nothing is ever fetched: an address or a path in a request is refused by name.
// Decoding pixels and samples is no business of this package. It imports
// appliance for its types, appliance/jsontext, and the packages below it for what files
// declare.
package media
