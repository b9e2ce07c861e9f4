package sound

import (
	"hash/crc32"
	"math/bits"
)

// page is one page of an Ogg stream (RFC 3533, section 6).
type page struct {
	first, last bool  // of its logical stream
	continued   bool  // begins in the middle of a packet
	granule     int64 // position at the end of the last packet that ends here, -1 for none
	serial      uint32
	segments    []byte // lengths
	body        []byte
}

// oggTable is the table of Ogg's checksum: the polynomial of IEEE 802.3, most
// significant bit first.
var oggTable = func() (t [256]uint32) {
	for i := range t {
		t[i] = bits.Reverse32(crc32.IEEETable[bits.Reverse8(uint8(i))])
	}
	return t
}()

// readPage reads the page at the beginning of b and tells its size. ok is false where
// the page is cut short.
func readPage(b []byte) (p page, size int, ok bool, err error) {
	if len(b) < 27 {
		return page{}, 0, false, nil
	}
	if string(b[:4]) != "OggS" || b[4] != 0 {
		return page{}, 0, false, damaged("Ogg", "a page does not begin as one")
	}
	count := int(b[26])
	if len(b) < 27+count {
		return page{}, 0, false, nil
	}
	p = page{
		continued: b[5]&1 != 0, first: b[5]&2 != 0, last: b[5]&4 != 0,
		granule: int64(le.Uint64(b[6:])), serial: le.Uint32(b[14:]), segments: b[27 : 27+count],
	}
	size = 27 + count
	for _, n := range p.segments {
		size += int(n)
	}
	if len(b) < size {
		return page{}, 0, false, nil
	}
	p.body = b[27+count : size]
	sum := uint32(0)
	for i, c := range b[:size] {
		if i >= 22 && i < 26 { // the checksum itself counts as zero
			c = 0
		}
		sum = sum<<8 ^ oggTable[byte(sum>>24)^c]
	}
	if sum != le.Uint32(b[22:]) {
		return page{}, 0, false, damaged("Ogg", "the checksum of a page is wrong")
	}
	return p, size, true, nil
}

// packets walks the packets of the first logical stream of a file. Pages of other
// streams are passed over, and a stream that follows it is not read.
type packets struct {
	rest   []byte
	begun  bool
	serial uint32
	part   []byte // of a packet that goes on in the next page
	broken bool   // the beginning of the packet at hand is missing
	done   bool
}

// next gives the packets that end in the next page, and the page. It gives no page at
// the end. The packets are valid until the call after.
func (r *packets) next() (p page, out [][]byte, ok bool, err error) {
	for !r.done {
		p, size, ok, err := readPage(r.rest)
		if err != nil || !ok {
			r.done = true
			return page{}, nil, false, err
		}
		r.rest = r.rest[size:]
		if !r.begun {
			r.begun, r.serial = true, p.serial
		}
		if p.serial != r.serial {
			continue
		}
		r.done = p.last
		return p, r.split(p), true, nil
	}
	return page{}, nil, false, nil
}

func (r *packets) split(p page) (out [][]byte) {
	if !p.continued {
		r.part = nil
	}
	r.broken = p.continued && r.part == nil
	begin, end := 0, 0
	for _, n := range p.segments {
		end += int(n)
		if n == 255 {
			continue // the packet goes on
		}
		if packet := p.body[begin:end]; !r.broken {
			if r.part != nil {
				packet = append(r.part, packet...)
			}
			out = append(out, packet)
		}
		r.part, r.broken, begin = nil, false, end
	}
	if begin < end && !r.broken {
		r.part = append(r.part, p.body[begin:end]...)
	}
	return out
}
