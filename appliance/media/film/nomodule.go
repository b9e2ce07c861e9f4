//go:build !ffmpeg || noffmpeg

package film

// Without the tag ffmpeg there is no module in the program, nor anything under its
// licence.
const (
	module  = ""
	Licence = ""
)
