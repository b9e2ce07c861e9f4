package film

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
)

// tail keeps the beginning of what a child writes to its standard error.
type tail struct {
	foreign bool // ffmpeg writes it, which quotes names and words of the file
	mu      sync.Mutex
	text    []byte
}

// verdicts are what ffmpeg says, and what that means in words of ours.
var verdicts = []struct {
	said string
	err  error
}{
	{"moov atom not found", ErrShort},
	{"partial file", ErrShort},
	{"End of file", ErrShort},
	{"matches no streams", damaged("it has no such track")},
	{"Decoder not found", fmt.Errorf("%w: nothing decodes its track", ErrUnsupported)},
	{"no decoder found", fmt.Errorf("%w: nothing decodes its track", ErrUnsupported)},
	{"Invalid data found", damaged("the decoder finds invalid data")},
	{"Cannot allocate memory", fmt.Errorf("%w: the decoder has not enough memory", ErrTooLarge)},
}

// verdict names what ffmpeg says without its words.
func verdict(said string) error {
	for _, v := range verdicts {
		if strings.Contains(said, v.said) {
			return v.err
		}
	}
	return damaged("the decoder refuses it")
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 2<<10 - len(t.text); room > 0 {
		t.text = append(t.text, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

// judge names the reason why a child ended.
func (t *tail) judge(ctx, limited context.Context, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.text)
	line, _, _ := bytes.Cut(text, []byte("\n"))
	said := strings.ToValidUTF8(string(line), "?")
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return ErrTime
	case strings.Contains(said, ErrNoDecoder.Error()):
		return ErrNoDecoder
	case said == "":
		return damaged("the decoder ended: %v", err)
	}
	if t.foreign && !strings.HasPrefix(said, "film: child: ") {
		return verdict(string(text))
	}
	return damaged("the decoder says: %s", said)
}
