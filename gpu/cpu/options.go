package cpu

// Options chooses what New returns.
type Options struct {
	// Kernels names an instruction set, "plain" or "avx2"; empty takes the best one
	// that this machine has.
	Kernels string
}
