package meter

import "ganglion/plugins/wasm"

// Prices. A unit of fuel is meant to be about a nanosecond of the compiler's code at
// worst, so that fuel bounds the time for which nobody else gets the processor: compiled
// code cannot be interrupted, and the garbage collector waits for it. Most instructions
// cost 1 and take less. Those that take longer when each waits for the one before, by
// BenchmarkPrice, cost more; the numbers are theirs in nanoseconds, rounded. A price of 1
// for all would let a chain of divisions run five times as long on the same fuel, and a
// chain of square roots fifteen times.
//
// Memory is the exception. A load that misses all caches takes a hundred nanoseconds, one
// that hits takes none, and no price fits both; 3 is what a chain of hits takes. What the
// misses of a whole call take is for its sequence to bear; that nobody else waits for them
// is what a breath is for.
const (
	callPrice   = 64 // of entering a function: bounds how deep calls nest
	freeLocals  = 64 // of a function: what more of them take of a stack is paid for by the byte
	localBytes  = 16 // of the largest local
	headPrice   = 4  // of a loop's head: the charge there is the larger part of an empty loop
	bulkPrice   = 48 // of a bulk instruction of length 0
	growPrice   = 128
	bytesShift  = 4  // bulk instructions on memory: 1 for 16 bytes
	pageShift   = 12 // memory.grow: 4,096 for a page
	vectorPrice = 2  // of a vector instruction that is not listed

	// absorbed is how much of later pieces a charge takes on: enough for the small
	// branches of a hot loop, little beside what a charge itself costs to run. On C
	// kernels 0 makes code 15 % slower than 32, and taking on everything makes an
	// interpreter pay three times for what it runs (14 against 8 and 24 million).
	absorbed = 32
)

var (
	plainPrices  = makePrices(1, plainPriceList)
	miscPrices   = makePrices(1, miscPriceList)
	vectorPrices = makePrices(vectorPrice, vectorPriceList)
)

// price is what an instruction costs whenever it runs, without what depends on its
// operands.
func price(op wasm.Op) int64 {
	switch op >> 8 {
	case 0xfc:
		return int64(miscPrices[op&0xff])
	case 0xfd:
		return int64(vectorPrices[op&0xff])
	}
	return int64(plainPrices[op&0xff])
}

type priceRow struct{ first, last, price int }

func makePrices(rest uint16, rows []priceRow) (table [256]uint16) {
	for i := range table {
		table[i] = rest
	}
	for _, r := range rows {
		for i := r.first; i <= r.last; i++ {
			table[i] = uint16(r.price)
		}
	}
	return table
}

var plainPriceList = []priceRow{
	{0x11, 0x11, 4},         // call_indirect
	{0x25, 0x26, 3},         // table.get, set
	{0x28, 0x35, 3},         // loads
	{0x36, 0x3e, 2},         // stores
	{0x40, 0x40, growPrice}, // memory.grow
	{0x6d, 0x70, 12},        // i32 division and remainder
	{0x7f, 0x82, 16},        // i64 division and remainder
	{0x8d, 0x90, 3},         // f32 ceil, floor, trunc, nearest
	{0x91, 0x91, 10},        // f32.sqrt
	{0x95, 0x95, 10},        // f32.div
	{0x96, 0x98, 3},         // f32 min, max, copysign
	{0x9b, 0x9e, 3},
	{0x9f, 0x9f, 16}, // f64.sqrt
	{0xa3, 0xa3, 14}, // f64.div
	{0xa4, 0xa6, 3},
	{0xa8, 0xab, 6}, // float to integer
	{0xae, 0xb1, 6},
	{0xb2, 0xbb, 4},   // integer to float, float to float
	{0xd2, 0xd2, 256}, // ref.func: leaves the compiled code
}

var miscPriceList = []priceRow{
	{0, 7, 6}, // saturating conversions
	{8, 8, bulkPrice},
	{9, 9, 4}, // data.drop
	{10, 12, bulkPrice},
	{13, 13, 4}, // elem.drop
	{14, 14, bulkPrice},
	{15, 15, 256}, // table.grow: leaves the compiled code
	{16, 16, 3},
	{17, 17, bulkPrice},
}

var vectorPriceList = []priceRow{
	{0, 10, 3},  // loads
	{13, 13, 4}, // i8x16.shuffle
	{15, 22, 4}, // splat, extract
	{24, 25, 4},
	{27, 27, 4},
	{29, 29, 4},
	{31, 31, 4},
	{33, 33, 4},
	{83, 87, 4},   // any_true, loads of a lane
	{92, 93, 3},   // loads
	{98, 100, 4},  // popcnt, all_true, bitmask
	{103, 106, 4}, // rounding
	{107, 109, 4}, // shifts of bytes
	{116, 117, 4},
	{122, 122, 4},
	{124, 127, 4},
	{130, 132, 4},
	{148, 148, 4},
	{156, 159, 4},
	{163, 164, 4},
	{188, 191, 4},
	{192, 192, 4},
	{195, 196, 4},
	{203, 203, 4},
	{204, 204, 12}, // i64x2.shr_s
	{205, 205, 4},
	{213, 213, 5}, // i64x2.mul
	{220, 223, 6},
	{227, 227, 12}, // f32x4.sqrt
	{231, 231, 10}, // f32x4.div
	{232, 233, 6},  // f32x4 min, max
	{239, 239, 20}, // f64x2.sqrt
	{243, 243, 16}, // f64x2.div
	{244, 245, 6},
	{248, 255, 20}, // conversions
}
