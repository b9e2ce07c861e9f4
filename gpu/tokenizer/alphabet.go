package tokenizer

import "unicode/utf8"

// The byte alphabet of GPT-2 (openai/gpt-2, bytes_to_unicode) writes each byte
// as one printable character: the printable characters of Latin-1 stand for
// themselves, the other bytes in ascending order for U+0100, U+0101 and so on.
var (
	byteToRune [256]rune
	runeToByte [0x144]int16 // −1 where a character is not in the alphabet
)

func init() {
	for i := range runeToByte {
		runeToByte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE) {
			r = next
			next++
		}
		byteToRune[b] = r
		runeToByte[r] = int16(b)
	}
}

// appendAlphabetBytes appends the bytes that text in the byte alphabet stands
// for; a character outside the alphabet stands for itself.
func appendAlphabetBytes(dst []byte, text string) []byte {
	for _, r := range text {
		if int(r) < len(runeToByte) && runeToByte[r] >= 0 {
			dst = append(dst, byte(runeToByte[r]))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// appendAlphabet appends the bytes of b in the byte alphabet.
func appendAlphabet[T string | []byte](dst []byte, b T) []byte {
	for i := range len(b) {
		dst = utf8.AppendRune(dst, byteToRune[b[i]])
	}
	return dst
}
