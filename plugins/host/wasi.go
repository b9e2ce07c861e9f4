package host

import (
	"encoding/binary"
	"strings"
	"sync"

	"ganglion/plugins/abi"
)

// Error numbers of WASI preview 1.
const (
	wasiBadFile        = 8
	wasiFault          = 21
	wasiNotImplemented = 52
)

// wasiSignatures are all functions of WASI preview 1 with their parameters.
const wasiSignatures = `args_get ii|args_sizes_get ii|environ_get ii|environ_sizes_get ii|clock_res_get ii|clock_time_get iIi
fd_advise iIIi|fd_allocate iII|fd_close i|fd_datasync i|fd_fdstat_get ii|fd_fdstat_set_flags ii|fd_fdstat_set_rights iII
fd_filestat_get ii|fd_filestat_set_size iI|fd_filestat_set_times iIIi|fd_pread iiiIi|fd_prestat_get ii|fd_prestat_dir_name iii
fd_pwrite iiiIi|fd_read iiii|fd_readdir iiiIi|fd_renumber ii|fd_seek iIii|fd_sync i|fd_tell ii|fd_write iiii
path_create_directory iii|path_filestat_get iiiii|path_filestat_set_times iiiiIIi|path_link iiiiiii|path_open iiiiiIIii
path_readlink iiiiii|path_remove_directory iii|path_rename iiiiii|path_symlink iiiii|path_unlink_file iii
poll_oneoff iiii|proc_exit i|proc_raise i|sched_yield |random_get ii|sock_accept iii|sock_recv iiiiii|sock_send iiiii|sock_shutdown ii`

// wasiFunctions is what a guest of Go finds of WASI: enough for its runtime to begin, and
// nothing that reaches out. Files do not exist, all else is not implemented.
var wasiFunctions = sync.OnceValue(func() (out []hostFunction) {
	does := map[string]func(i *Instance, s []uint64) int{
		"args_get":          func(*Instance, []uint64) int { return 0 },
		"environ_get":       func(*Instance, []uint64) int { return 0 },
		"args_sizes_get":    wasiNothing,
		"environ_sizes_get": wasiNothing,
		"clock_time_get":    wasiClock,
		"random_get":        wasiRandom,
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
			f.call = func(i *Instance, s []uint64) { i.throw(CodeTrap, "proc_exit(%d)", arg(s[0])) }
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

// wasiClock stands still.
func wasiClock(i *Instance, s []uint64) int {
	if !i.g.memory.WriteUint64Le(arg(s[2]), 0) {
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

// wasiWrite makes log lines of what goes to standard output and standard error.
func wasiWrite(i *Instance, s []uint64) int {
	file, list, n, out := arg(s[0]), arg(s[1]), arg(s[2]), arg(s[3])
	if file != 1 && file != 2 {
		return wasiBadFile
	}
	total := uint32(0)
	for ; n > 0; n-- {
		v, ok := i.input(list, 8)
		if !ok {
			return wasiFault
		}
		i.burn(1)
		at, size := binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:])
		if _, ok := i.bytes(at, size); !ok {
			return wasiFault
		}
		for left := size; left > 0; { // what is over the quota is lost
			line := min(left, maxLogLine)
			if i.log(file, at, line) == abi.OverQuota {
				break
			}
			at, left = at+line, left-line
		}
		total += size
		list += 8
	}
	if !i.g.memory.WriteUint32Le(out, total) {
		return wasiFault
	}
	return 0
}
