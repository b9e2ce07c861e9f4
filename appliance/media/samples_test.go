package media

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
)

var le, be = binary.LittleEndian, binary.BigEndian

func pngFile(w, h int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(i * 7)
	}
	var b bytes.Buffer
	png.Encode(&b, m)
	return b.Bytes()
}

func jpegFile() []byte {
	var b bytes.Buffer
	jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30)), nil)
	return b.Bytes()
}

func gifFile() []byte {
	m := image.NewPaletted(image.Rect(0, 0, 5, 4), color.Palette{color.Black, color.White})
	var b bytes.Buffer
	gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{m, m}, Delay: []int{1, 1}})
	return b.Bytes()
}

func bmpFile(w, h int32) []byte {
	b := append([]byte("BM"), make([]byte, 52)...)
	le.PutUint32(b[14:], 40)
	le.PutUint32(b[18:], uint32(w))
	le.PutUint32(b[22:], uint32(h))
	return append(b, 0, 0, 0, 0)
}

func tiffFile(order binary.AppendByteOrder, w uint16, h uint32) []byte {
	b := []byte("II*\x00")
	if order.String() == "BigEndian" {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(order.AppendUint16(b, 256), 3)
	b = order.AppendUint16(order.AppendUint16(order.AppendUint32(b, 1), w), 0)
	b = order.AppendUint16(order.AppendUint16(b, 257), 4)
	return order.AppendUint32(order.AppendUint32(b, 1), h)
}

func webpFile(kind string, w, h int) []byte {
	body := []byte(kind)
	switch kind {
	case "VP8X":
		body = append(le.AppendUint32(body, 10), 0, 0, 0, 0, byte(w-1), byte((w-1)>>8), 0, byte(h-1), byte((h-1)>>8), 0)
	case "VP8L":
		body = le.AppendUint32(append(le.AppendUint32(body, 5), 0x2f), uint32(w-1)|uint32(h-1)<<14)
		body = append(body, 0)
	case "VP8 ":
		body = append(le.AppendUint32(body, 10), 0, 0, 0, 0x9d, 1, 0x2a)
		body = le.AppendUint16(le.AppendUint16(body, uint16(w)), uint16(h))
	}
	return append(append(le.AppendUint32([]byte("RIFF"), uint32(4+len(body))), "WEBP"...), body...)
}

func wavFileOf(tag, channels, bits uint16, rate uint32, seconds float64) []byte {
	align := channels * bits / 8
	n := int(seconds*float64(rate)) * int(align)
	fm := le.AppendUint16(nil, tag)
	fm = le.AppendUint32(le.AppendUint16(fm, channels), rate)
	fm = le.AppendUint16(le.AppendUint16(le.AppendUint32(fm, rate*uint32(align)), align), bits)
	if tag == 0xFFFE {
		fm = le.AppendUint16(le.AppendUint16(fm, 22), bits)
		fm = append(le.AppendUint16(le.AppendUint32(fm, 3), wavPCM), "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"...)
	}
	b := append([]byte("RIFF\x00\x00\x00\x00WAVELIST"), 2, 0, 0, 0, 'a', 'b')
	b = append(le.AppendUint32(append(b, "fmt "...), uint32(len(fm))), fm...)
	return append(le.AppendUint32(append(b, "data"...), uint32(n)), make([]byte, n)...)
}

func flacFile(rate, samples uint64) []byte {
	b := append([]byte("fLaC"), 0x80, 0, 0, 34)
	b = append(b, 0x10, 0, 0x10, 0, 0, 0, 0, 0, 0, 0) // blocks of 4096 samples
	b = be.AppendUint64(b, rate<<44|1<<41|15<<36|samples)
	return append(b, make([]byte, 16)...)
}
