//go:build race

package host

// racing tells that the race detector slows everything here tenfold.
const racing = true
