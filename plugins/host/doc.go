// Package host runs plugins: WebAssembly modules of strangers, in wazero, under fuel and
// memory limits, by the contract of plugins/abi/ABI.md.
//
// A file becomes a Plugin in one pipeline (load.go): structure, validity, fuel (the
// module is rewritten by plugins/meter), compilation in a child process into a cache whose
// entries carry our own authentication code (compile.go, cache.go), one instance, golden
// tests. A Plugin is shared; Plugin.Open takes an instance out of its pool for one
// sequence of one request, with the memory that the guest's initialisation left and
// nothing of any other request.
//
// What a guest does, it does to itself alone. A call ends when its fuel does; a trap, a
// full memory, a refused answer and a panic of ours inside a host function come back as an
// *Error. Host functions check every pointer and never trap for a bad one. The host reads
// from guest memory only after checking, keeps its own copy of every offset, and looks at
// the memory anew after each call, for it may have moved.
//
// A hook costs the host no allocation. The package knows no model and no request: what a
// guest may ask for comes in as small interfaces (services.go). It imports plugins/abi,
// plugins/meter, plugins/rowstats, plugins/sampling (the generator of random words alone)
// and plugins/wasm.
package host
