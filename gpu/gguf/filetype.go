package gguf

// fileTypes are the names of general.file_type as llama.cpp numbers them (llama_ftype):
// what a file was quantised for, most of whose tensors have the type of that name and some
// a larger one. Numbers that are not here belong to forms that are no longer written.
var fileTypes = [...]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1",
	10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
	19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL",
	26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
	36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4",
}

// FileType is the name of the form that the file says it was quantised for
// (general.file_type), such as "Q4_K_M"; ok is false where it does not say, or only
// guessed.
func (f *File) FileType() (name string, ok bool) {
	n, ok := f.Int("general.file_type")
	if !ok || n < 0 || n >= int64(len(fileTypes)) {
		return "", false
	}
	return fileTypes[n], fileTypes[n] != ""
}
