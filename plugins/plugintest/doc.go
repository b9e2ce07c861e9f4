// Package plugintest decides whether a plugin keeps the contract of plugins/abi/ABI.md.
//
// Ten checks, each with a name of its own, run a plugin the way a server does: loaded by
// plugins/host, its hooks called by plugins/pipeline inside a chain of plugins/sampling,
// over made-up rows of logits. No model is needed, and all rows come from seeds
// (corpus.go), so a result is the same on every machine, but for the times.
//
//	func TestPlugin(t *testing.T) { plugintest.Run(t, "my.wasm", plugintest.Options{}) }
//
// [Check] is the same for programs; it returns a [Report]. For each check the package's
// own tests hold a broken twin (testdata/twins): a plugin with one fault that this check
// finds and none before it.
//
// The package imports plugins/abi, plugins/host, plugins/pipeline, plugins/sampling and
// plugins/wasm.
package plugintest
