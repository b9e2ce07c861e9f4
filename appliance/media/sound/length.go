package sound

import "slices"

// Length measures a sound that Decode does not read but other decoders do: MP3 of MPEG-2.5
// (8 to 12 kHz), and WAV with ADPCM, GSM or MP3. ok is false for all others.
func Length(b []byte) (codec string, seconds float64, ok bool) {
	if len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WAVE" {
		seconds = wavLength(b[12:])
		return "WAV", seconds, seconds > 0
	}
	s, err := walkMP3(b)
	if err != nil {
		return "", 0, false
	}
	return "MP3", s.i.Seconds(), true
}

// foreignWAV are the format tags of WAV that other decoders know: ADPCM of Microsoft and of the
// IMA, GSM and MP3.
var foreignWAV = []uint16{2, 0x11, 0x31, 0x55}

// wavLength is how many seconds such a WAV file lasts, as far as its chunks tell, else 0: the
// samples that it says it has, unless its blocks hold less.
func wavLength(b []byte) float64 {
	const mp3 = 0x55
	var rate, perByte, told float64 // perByte: samples
	for len(b) >= 8 {
		name, n, rest := string(b[:4]), int(le.Uint32(b[4:])), b[8:]
		switch {
		case name == "fmt " && n >= 20 && len(rest) >= 20:
			tag := le.Uint16(rest)
			if !slices.Contains(foreignWAV, tag) {
				return 0
			}
			rate = float64(le.Uint32(rest[4:]))
			if tag == mp3 {
				perByte = rate / float64(max(le.Uint32(rest[8:]), 1))
			} else {
				perByte = float64(le.Uint16(rest[18:])) / float64(max(le.Uint16(rest[12:]), 1))
			}
		case name == "fact" && n >= 4 && len(rest) >= 4:
			told = float64(le.Uint32(rest))
		case name == "data" && rate > 0:
			if n == 0 || n > len(rest) {
				n = len(rest)
			}
			held := float64(n) * perByte
			if told > 0 && told < 1.1*held {
				held = told
			}
			return held / rate
		}
		if n += n & 1; n > len(rest) {
			return 0
		}
		b = rest[n:]
	}
	return 0
}
