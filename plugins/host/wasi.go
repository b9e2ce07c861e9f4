package host

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"
)

// Error numbers of WASI preview 1.
const (
	wasiBadFile        = 8
	wasiFault          = 21
	wasiInvalid        = 28
	wasiNotImplemented = 52
)

// What fd_fdstat_get says of standard output and standard error: a terminal that is written
// to and cannot be sought in. The C library writes lines to one at once, and keeps all that
// is written to anything else until the program exits, which no plugin does.
const (
	wasiTerminal    = 2      // file type: character device
	wasiMayWrite    = 1 << 6 // right: fd_write
	wasiFdstatBytes = 24     // type u8, flags u16, rights u64, rights that are passed on u64
)

// wasiSignatures are all functions of WASI preview 1 with their parameters.
const wasiSignatures = `args_get ii|args_sizes_get ii|environ_get ii|environ_sizes_get ii|clock_res_get ii|clock_time_get iIi
fd_advise iIIi|fd_allocate iII|fd_close i|fd_datasync i|fd_fdstat_get ii|fd_fdstat_set_flags ii|fd_fdstat_set_rights iII
fd_filestat_get ii|fd_filestat_set_size iI|fd_filestat_set_times iIIi|fd_pread iiiIi|fd_prestat_get ii|fd_prestat_dir_name iii
fd_pwrite iiiIi|fd_read iiii|fd_readdir iiiIi|fd_renumber ii|fd_seek iIii|fd_sync i|fd_tell ii|fd_write iiii
path_create_directory iii|path_filestat_get iiiii|path_filestat_set_times iiiiIIi|path_link iiiiiii|path_open iiiiiIIii
path_readlink iiiiii|path_remove_directory iii|path_rename iiiiii|path_symlink iiiii|path_unlink_file iii
poll_oneoff iiii|proc_exit i|proc_raise i|sched_yield |random_get ii|sock_accept iii|sock_recv iiiiii|sock_send iiiii|sock_shutdown ii`

// wasiFunctions is what a guest of Go finds of WASI: enough for its runtime and for the C and
// Rust libraries, and nothing that reaches out. Files do not exist, all else is not
// implemented.
var wasiFunctions = sync.OnceValue(func() (out []hostFunction) {
	does := map[string]func(i *Instance, s []uint64) int{
		"args_get":          func(*Instance, []uint64) int { return 0 },
		"environ_get":       func(*Instance, []uint64) int { return 0 },
		"args_sizes_get":    wasiNothing,
		"environ_sizes_get": wasiNothing,
		"clock_res_get":     wasiResolution,
		"clock_time_get":    wasiClock,
		"poll_oneoff":       wasiPoll,
		"random_get":        wasiRandom,
		"fd_fdstat_get":     wasiFdstat,
		"fd_write":          wasiWrite,
		"sched_yield":       func(*Instance, []uint64) int { return 0 },
	}
	for entry := range strings.FieldsFuncSeq(wasiSignatures, func(r rune) bool { return r == '|' || r == '\n' }) {
		name, params, _ := strings.Cut(entry, " ")
		f := hostFunction{name: name, params: params, results: "i"}
		do := does[name]
		switch {
		case name == "proc_exit":
			f.results = ""
			f.call = func(i *Instance, s []uint64) {
				i.endLines()
				i.throw(CodeTrap, "proc_exit(%d)%s", arg(s[0]), i.lastWords())
			}
		case do != nil:
			f.call = func(i *Instance, s []uint64) { s[0] = uint64(do(i, s)) }
		case strings.HasPrefix(name, "fd_"):
			f.call = func(_ *Instance, s []uint64) { s[0] = wasiBadFile }
		default:
			f.call = func(_ *Instance, s []uint64) { s[0] = wasiNotImplemented }
		}
		out = append(out, f)
	}
	return out
})

// wasiNothing says that there are no arguments, or no environment.
func wasiNothing(i *Instance, s []uint64) int {
	if !i.g.memory.WriteUint32Le(arg(s[0]), 0) || !i.g.memory.WriteUint32Le(arg(s[1]), 0) {
		return wasiFault
	}
	return 0
}

func wasiRandom(i *Instance, s []uint64) int {
	b, ok := i.input(arg(s[0]), arg(s[1]))
	if !ok {
		return wasiFault
	}
	i.burn(int64(len(b))) // a word costs some instructions
	var word [4]byte
	for at := 0; at < len(b); at += len(word) {
		binary.LittleEndian.PutUint32(word[:], i.random())
		copy(b[at:], word[:])
	}
	return 0
}

// wasiStandard tells whether a file is standard output or standard error, all there are.
func wasiStandard(file uint32) bool { return file == 1 || file == 2 }

// wasiFdstat describes a file.
func wasiFdstat(i *Instance, s []uint64) int {
	if !wasiStandard(arg(s[0])) {
		return wasiBadFile
	}
	b, ok := i.bytes(arg(s[1]), wasiFdstatBytes)
	if !ok {
		return wasiFault
	}
	clear(b)
	b[0] = wasiTerminal
	binary.LittleEndian.PutUint64(b[8:], wasiMayWrite)
	return 0
}

// wasiWrite makes log lines of what goes to standard output and standard error.
func wasiWrite(i *Instance, s []uint64) int {
	file, list, n, out := arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3])
	if !wasiStandard(file) {
		return wasiBadFile
	}
	total := uint32(0)
	for ; n > 0; n-- {
		v, ok := i.input(list, 8)
		if !ok {
			return wasiFault
		}
		i.burn(32)
		b, ok := i.input(binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]))
		if !ok {
			return wasiFault
		}
		i.write(file, b)
		total += uint32(len(b))
		list += 8
	}
	if !i.g.memory.WriteUint32Le(out, total) {
		return wasiFault
	}
	return 0
}

// write adds to the line that a file stands in, and logs the lines that end. Runtimes write
// a line piece by piece, and the quota counts lines. What is over the quota is lost.
func (i *Instance) write(file uint32, b []byte) {
	line := &i.lines[file-1]
	for len(b) > 0 {
		i.burn(hostCallFuel)
		piece, rest := b, []byte(nil)
		at := bytes.IndexByte(b, '\n')
		if at >= 0 {
			piece, rest = b[:at], b[at+1:]
		}
		if room := maxLogLine - len(*line); len(piece) > room {
			piece, rest, at = b[:room], b[room:], room
		}
		if len(*line) == 0 && len(piece) > 0 {
			i.burn(logFuel) // for when it ends
		}
		*line = append(*line, piece...)
		if b = rest; at >= 0 {
			i.endLine(file)
		}
	}
}

// endLine logs the line that a file stands in.
func (i *Instance) endLine(file uint32) {
	line := &i.lines[file-1]
	b := *line
	if len(b) == 0 {
		return
	}
	*line = b[:0]
	if file == 2 && i.cried == "" {
		i.cried = strings.ToValidUTF8(string(b[:min(len(b), maxErrorText)]), "\uFFFD")
	}
	if i.logged.take(len(b)) {
		i.tell(logLevels[file], b) // output informs, errors warn
	}
}

// endLines logs what a call leaves without a line feed.
func (i *Instance) endLines() {
	i.endLine(1)
	i.endLine(2)
}
