package devicetest

import (
	"encoding/binary"
	"slices"
)

// Capabilities of SPIR-V, section 3.31 of its specification.
const (
	capMatrix           = 0
	capShader           = 1
	capFloat16          = 9
	capSampledBuffer    = 46 // texel fetches
	capGroupNonUniform  = 61
	capGroupArithmetic  = 63
	capDotInput4x8      = 6017
	capDotInputPacked   = 6018
	capDotProduct       = 6019
	opCapability        = 17
	spirvMagic          = 0x07230203
	spirvHeaderWords    = 5
	spirvLengthOfOpcode = 16 // the high half of an instruction's first word is its length
)

// capabilities lists what a module needs of a device. They stand before all else; what is
// no module needs nothing.
func capabilities(module []byte) (all []uint32) {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(module[4*i:]) }
	n := len(module) / 4
	if n < spirvHeaderWords || word(0) != spirvMagic {
		return nil
	}
	for i := spirvHeaderWords; i+1 < n; {
		length := int(word(i) >> spirvLengthOfOpcode)
		if word(i)&0xFFFF != opCapability || length < 2 {
			break
		}
		all = append(all, word(i+1))
		i += length
	}
	return all
}

// allows says whether the profile has what a capability asks for.
func (l *Limited) allows(capability uint32) bool {
	have := []uint32{capMatrix, capShader}
	if l.limits.Texels > 0 {
		have = append(have, capSampledBuffer)
	}
	if l.caps.Subgroup > 0 {
		have = append(have, capGroupNonUniform, capGroupArithmetic)
	}
	if l.caps.Half {
		have = append(have, capFloat16)
	}
	if l.caps.Dot4 {
		have = append(have, capDotInput4x8, capDotInputPacked, capDotProduct)
	}
	return slices.Contains(have, capability)
}
