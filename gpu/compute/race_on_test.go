//go:build race

package compute

// The race detector slows the suite's own arithmetic tenfold; with it the long tests run a
// share, and whole in a run of their own (build.sh).
const raceDetector = true
