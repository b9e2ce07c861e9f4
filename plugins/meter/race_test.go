//go:build race

package meter

// The race detector slows engines and reader tenfold. Nothing here runs in two goroutines,
// so with it the long tests run a share; build.sh runs them whole without it.
const raceDetector = true
