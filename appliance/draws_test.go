package appliance

import "flag"

// The draws of rapid are the same at each run: what a test says of a commit does not change.
// -rapid.seed=0 draws anew, -rapid.checks=N more.
func init() {
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}
