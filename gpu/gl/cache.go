package gl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"time"

	"ganglion/gpu/device/cachedir"
)

// cache keeps compiled programs in files, one each, in a folder that is the user's alone. A file's name is a hash of the
// driver's strings and the text, so an update of the driver, another card or another
// kernel never meets an old file.
type cache struct {
	dir    string // "" = off
	driver string
}

// cacheMagic begins a file; the number is that of this layout:
//
//	8 bytes magic, 4 bytes format (little-endian), 32 bytes SHA-256 of format and binary, binary
const cacheMagic = "GGLBIN\x00\x01"

const cacheHeader = len(cacheMagic) + 4 + sha256.Size

// cacheMost bounds what is read of a file; program binaries are some ten kilobytes.
const cacheMost = 64 << 20

// cacheAge is how long a file is kept that nothing asks for: drivers are updated every
// few months, and what the old one compiled is of no use any more.
const cacheAge = 90 * 24 * time.Hour

// newCache keeps programs in a folder of its own below dir and removes old ones there.
func newCache(dir string, i identity, supported bool) cache {
	if dir == "" || !supported {
		return cache{}
	}
	c := cache{filepath.Join(dir, "gl"), i.key()}
	c.prune(time.Now().Add(-cacheAge))
	return c
}

// prune removes files that were last used before a time.
func (c cache) prune(before time.Time) {
	if cachedir.Private(c.dir) != nil {
		return // there is none yet, or it is not ours
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() && i.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}
}

func (c cache) on() bool { return c.dir != "" }

func (c cache) path(text string) string {
	sum := sha256.Sum256([]byte(c.driver + "\x00" + text))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+".bin")
}

// load gives the binary of a text and its format. A file that is damaged counts as
// missing: drivers do not check what they are given as carefully.
func (c cache) load(text string) (data []byte, format uint32, ok bool) {
	if !c.on() {
		return nil, 0, false
	}
	path := c.path(text)
	f, err := cachedir.Open(c.dir, path)
	if err != nil {
		return nil, 0, false
	}
	defer f.Close()
	file, err := io.ReadAll(io.LimitReader(f, cacheMost+1))
	if err != nil || len(file) > cacheMost || len(file) <= cacheHeader || string(file[:len(cacheMagic)]) != cacheMagic {
		return nil, 0, false
	}
	head, data := file[len(cacheMagic):cacheHeader], file[cacheHeader:]
	format = binary.LittleEndian.Uint32(head)
	if digest(format, data) != [sha256.Size]byte(head[4:]) {
		return nil, 0, false
	}
	_ = os.Chtimes(path, time.Time{}, time.Now()) // it is in use, see prune
	return data, format, true
}

// save writes the binary of a text. What cannot be kept is compiled again next time, so
// that a full disk is no error here.
func (c cache) save(text string, data []byte, format uint32) {
	if !c.on() || len(data) == 0 {
		return
	}
	if os.MkdirAll(c.dir, 0o700) != nil || cachedir.Private(c.dir) != nil {
		return
	}
	f, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return
	}
	defer os.Remove(f.Name())
	sum := digest(format, data)
	file := append([]byte(cacheMagic), binary.LittleEndian.AppendUint32(nil, format)...)
	file = append(append(file, sum[:]...), data...)
	_, err = f.Write(file)
	if f.Close() != nil || err != nil {
		return
	}
	_ = os.Rename(f.Name(), c.path(text)) // whole or not at all
}

func digest(format uint32, data []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint32(nil, format))
	h.Write(data)
	return [sha256.Size]byte(h.Sum(nil))
}
