package appliance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// An executable with a model inside is the program, zero bytes up to a multiple of
// embedAlign, perhaps the GGUF file of an encoder and zero bytes up to the next multiple,
// the GGUF file of the model as it is, and a trailer of 32 bytes: embedMagic, the
// offset and the size of the model as little-endian 64-bit integers, and the size of
// the program before it. The trailer stands at the very end.
const (
	embedMagic       = "GNGLMDL1"
	embedTrailerSize = 32
	// embedAlign is the largest page size in use, so that the model can be mapped on
	// every system.
	embedAlign = 64 << 10
)

// embedTrailer says where the parts of an executable are.
type embedTrailer struct{ offset, size, program int64 }

// Embedded looks for a model inside an executable. ok is false where there is none; an
// error means that the file cannot be read or that its trailer is damaged.
func Embedded(exePath string) (offset, size int64, ok bool, err error) {
	f, err := os.Open(exePath)
	if err != nil {
		return 0, 0, false, fmt.Errorf("appliance: embedded model: %w", err)
	}
	defer f.Close()
	t, ok, err := readEmbedTrailer(f)
	return t.offset, t.size, ok, err
}

func readEmbedTrailer(f *os.File) (t embedTrailer, ok bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return t, false, fmt.Errorf("appliance: embedded model: %w", err)
	}
	end := info.Size() - embedTrailerSize
	if end < 0 {
		return t, false, nil
	}
	var b [embedTrailerSize]byte
	if _, err := f.ReadAt(b[:], end); err != nil {
		return t, false, fmt.Errorf("appliance: embedded model: %w", err)
	}
	if string(b[:8]) != embedMagic {
		return t, false, nil
	}
	t.offset = int64(binary.LittleEndian.Uint64(b[8:]))
	t.size = int64(binary.LittleEndian.Uint64(b[16:]))
	t.program = int64(binary.LittleEndian.Uint64(b[24:]))
	// Compared by subtraction: a sum of hostile numbers could overflow.
	if t.program <= 0 || t.offset < t.program || t.offset > end || t.offset%embedAlign != 0 || t.size <= 0 || t.size != end-t.offset {
		return embedTrailer{}, false, fmt.Errorf("appliance: embedded model: %s: the trailer names %d bytes at %d after a program of %d, which do not fit in %d bytes", f.Name(), t.size, t.offset, t.program, info.Size())
	}
	return t, true, nil
}

// Bundled are the files that go into an executable. Encoder may be empty.
type Bundled struct{ Model, Encoder string }

// AppendModel writes dst: the program of the executable exe with the files inside. Of an exe that already holds a model only the program is taken. dst appears
// at once and whole, executable, or not at all; it may be exe itself where the system
// lets a running program be replaced. progress may be nil.
func AppendModel(dst, exe string, files Bundled, progress func(done, total int64)) (err error) {
	program, programSize, err := openProgram(exe)
	if err != nil {
		return err
	}
	defer program.Close()
	var parts []bundledFile
	for _, path := range []string{files.Encoder, files.Model} {
		if path == "" {
			continue
		}
		f, size, err := openWhole(path)
		if err != nil {
			return err
		}
		defer f.Close()
		parts = append(parts, bundledFile{f, size})
	}
	out, err := os.CreateTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".*")
	if err != nil {
		return fmt.Errorf("appliance: bundle: %w", err)
	}
	defer func() {
		if err != nil {
			// Both may have happened already; the first error is the one to report.
			_ = out.Close()
			_ = os.Remove(out.Name())
		}
	}()
	total := programSize
	for _, p := range parts {
		total = embedOffset(total) + p.size
	}
	w := &countedWriter{w: out, total: total + embedTrailerSize, progress: progress}
	if err := writeBundle(w, program, programSize, parts); err != nil {
		return fmt.Errorf("appliance: bundle: %w", err)
	}
	return publish(out, dst)
}

// embedOffset is where the model begins behind a program.
func embedOffset(program int64) int64 { return (program + embedAlign - 1) / embedAlign * embedAlign }

// openProgram opens an executable and tells how much of it is the program.
func openProgram(exe string) (*os.File, int64, error) {
	f, size, err := openWhole(exe)
	if err != nil {
		return nil, 0, err
	}
	t, ok, err := readEmbedTrailer(f)
	if err == nil && size == 0 {
		err = fmt.Errorf("appliance: bundle: %s: is empty", exe)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if ok {
		size = t.program
	}
	return f, size, nil
}

// openWhole opens a regular file.
func openWhole(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("appliance: bundle: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("appliance: bundle: %s: is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("appliance: bundle: %w", err)
	}
	return f, info.Size(), nil
}

// bundledFile is a file that goes into an executable.
type bundledFile struct {
	file *os.File
	size int64
}

// writeBundle writes a program and what goes behind it; the last part is the model.
func writeBundle(w *countedWriter, program io.ReaderAt, programSize int64, parts []bundledFile) error {
	if _, err := io.Copy(w, io.NewSectionReader(program, 0, programSize)); err != nil {
		return err
	}
	var offset, size int64
	for _, p := range parts {
		var magic [4]byte
		if _, err := p.file.ReadAt(magic[:], 0); err != nil || string(magic[:]) != ggufMagic {
			return fmt.Errorf("%s: is not a GGUF file", p.file.Name())
		}
		offset, size = embedOffset(w.done), p.size
		if _, err := w.Write(make([]byte, offset-w.done)); err != nil {
			return err
		}
		if n, err := io.Copy(w, io.NewSectionReader(p.file, 0, p.size)); err != nil {
			return err
		} else if n != p.size {
			return fmt.Errorf("%s: became shorter while it was read", p.file.Name())
		}
	}
	trailer := []byte(embedMagic)
	for _, n := range []int64{offset, size, programSize} {
		trailer = binary.LittleEndian.AppendUint64(trailer, uint64(n))
	}
	_, err := w.Write(trailer)
	return err
}

// publish makes the finished file durable and gives it its name.
func publish(f *os.File, dst string) error {
	if err := errors.Join(f.Chmod(0o755), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("appliance: bundle: %w", err)
	}
	if err := os.Rename(f.Name(), dst); err != nil {
		return fmt.Errorf("appliance: bundle: %w", err)
	}
	return nil
}

// countedWriter reports how much was written.
type countedWriter struct {
	w           io.Writer
	done, total int64
	progress    func(done, total int64)
}

func (c *countedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.done += int64(n)
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
	return n, err
}
