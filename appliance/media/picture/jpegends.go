package picture

import (
	"bytes"
	"encoding/binary"
)

// JPEGLength is the length of the JPEG file that b begins with, up to and with its end mark;
// negative where there is none.
func JPEGLength(b []byte) int {
	for i := 2; i+1 < len(b); {
		if b[i] != 0xff {
			j := bytes.IndexByte(b[i:], 0xff) // entropy-coded data
			if j < 0 {
				return -1
			}
			i += j
			continue
		}
		switch m := b[i+1]; {
		case m == 0xd9:
			return i + 2
		case m == 0xff:
			i++
		case m == 0 || m >= 0xd0 && m <= 0xd8 || m == 1:
			i += 2
		case i+4 > len(b):
			return -1
		default:
			i += 2 + max(int(binary.BigEndian.Uint16(b[i+2:])), 2)
		}
	}
	return -1
}
