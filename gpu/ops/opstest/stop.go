package opstest

import (
	"errors"
	"fmt"

	"ganglion/gpu/ops"
)

// checkStop runs batches that may be stopped: one that is not gives the same bits, one that
// is gives ErrStopped and leaves the runtime of use.
func checkStop(b ops.Backend) error {
	prog, done, err := open(b, smallModel(), modelOptions())
	if err != nil {
		return err
	}
	defer done()
	tokens := modelTokens([]int{13})[0]
	want, err := runRows(prog, tokenBatch(tokens, 0, 0))
	if err != nil {
		return err
	}
	for _, stopped := range []bool{false, true, false} {
		batch := tokenBatch(tokens, 0, 0)
		batch.Stop = new(ops.Stop)
		if stopped {
			batch.Stop.Set()
			if err := prog.Run(batch, &ops.Result{}); !errors.Is(err, ops.ErrStopped) {
				return fmt.Errorf("a batch that was stopped gave %v", err)
			}
			continue
		}
		got, err := runRows(prog, batch)
		if err != nil {
			return fmt.Errorf("a batch that may be stopped: %w", err)
		}
		if err := sameBits(outputs{got}, outputs{want}); err != nil {
			return fmt.Errorf("a batch that may be stopped: %w", err)
		}
	}
	return nil
}
