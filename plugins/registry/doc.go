// Package registry knows which plugins there are: those in the binary and those in a
// folder, which it watches.
//
// A file that is new or whose hash changed goes through the whole pipeline of
// plugins/host while requests go on; then its name points to it, at once for all requests
// that begin afterwards. Running requests keep the version they began with. A version that
// fails never takes the place of one that works, and why it failed is kept for the list.
//
// A plugin that fails three of its last twenty requests is quarantined: not given out
// until its file changes or somebody clears it. That outlives a restart (quarantine.go).
// Requests with settings of their own count against these settings and not against the
// file: nobody can take a plugin from others (settings.go). For the same reason failures
// that any request can cause are not counted, and the plugins of the binary never are.
// Who may bring plugins is a policy on signatures (signature.go).
//
// The package imports plugins/abi, plugins/host and plugins/sign.
package registry
