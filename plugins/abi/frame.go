package abi

// Version of the ABI.
const (
	Major = 1
	Minor = 0
)

// The frame's header: byte offsets of its fields from the start of the frame. ABI.md
// tells what they mean.
const (
	Magic       = 0x31464747 // "GGF1"
	HeaderBytes = 256
	FrameAlign  = 64

	OffMagic        = 0x00
	OffSize         = 0x04
	OffABI          = 0x08
	OffHook         = 0x0C
	OffFlags        = 0x10
	OffStep         = 0x14
	OffPosition     = 0x18
	OffSequence     = 0x1C
	OffVocab        = 0x20
	OffLastToken    = 0x24
	OffNPrompt      = 0x28
	OffNGenerated   = 0x2C
	OffHistory      = 0x30
	OffHistoryLen   = 0x34
	OffHistoryPos   = 0x38
	OffCandCap      = 0x3C
	OffCandN        = 0x40
	OffCandIDs      = 0x44
	OffCandLogits   = 0x48
	OffGatherN      = 0x4C
	OffGatherIDs    = 0x50
	OffGatherLogits = 0x54
	OffFull         = 0x58
	OffMask         = 0x5C
	OffEdit         = 0x60
	OffEditCap      = 0x64
	OffEditN        = 0x68
	OffOut          = 0x6C
	OffOutCap       = 0x70
	OffOutN         = 0x74
	OffIn           = 0x78
	OffInN          = 0x7C
	OffMax          = 0x80
	OffMean         = 0x84
	OffStd          = 0x88
	OffLogSumExp    = 0x8C
	OffEntropy      = 0x90
	OffCandMass     = 0x94
	OffTemperature  = 0x98
	OffNFinite      = 0x9C
	OffRandom       = 0xA0
	OffToken        = 0xC0
	OffBacktrack    = 0xC4
	OffStopReason   = 0xC8
	OffWakeStep     = 0xCC
	OffFuel         = 0xD0
	OffReserved     = 0xD8

	RandomWords = 8
	NoToken     = 0xFFFFFFFF // last_token of an empty sequence
)

// Flags of the frame.
const (
	FlagGreedy      = 1 << iota // the likeliest token is taken
	FlagDraft                   // the step is a guess
	FlagFirst                   // the first step
	FlagLast                    // the last step, or the end of the text
	FlagReplay                  // tokens are given again
	FlagInterpreter             // the guest is interpreted
)

// Op is what an edit does with a logit x and its value v.
type Op uint32

// The ops.
const (
	OpAdd       Op = iota // x + v
	OpSet                 // v
	OpMulSigned           // x > 0 ? x/v : x·v
	OpBan                 // −∞
	OpMin                 // min(x, v)
	OpMax                 // max(x, v)

	Ops = 6
)

// EditBytes is the size of an edit; its first word is id | op << EditShift.
const (
	EditBytes = 8
	EditShift = 28
	EditID    = 1<<EditShift - 1
)

// StopReason says why a text ends.
type StopReason uint32

// The reasons.
const (
	StopStop          StopReason = 1
	StopLength        StopReason = 2
	StopContentFilter StopReason = 3
	StopError         StopReason = 4
)

// What host functions return when they do not do what they were asked for. A result of
// Needs or below says that -r-100 units are needed.
const (
	Invalid      = -1
	NotPermitted = -3
	NotFound     = -4
	OverQuota    = -5
	Needs        = -100
)

// TooSmall is the result of a host function that needs n units.
func TooSmall(n int) int32 { return int32(-n - 100) }
