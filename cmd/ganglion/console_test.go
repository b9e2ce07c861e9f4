package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/gpu"
	"ganglion/gpu/engine"
)

// What the terminal sees.

func TestReport(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	plain := errors.New("plain")
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		code int
		want string
	}{
		{"plain", context.Background(), plain, 1, "ganglion: error: plain\n"},
		{"failure", context.Background(), fail(2, "try that", "wrong %d", 3), 2, "ganglion: error: wrong 3\nganglion: hint: try that\n"},
		{"wrapped failure", context.Background(), fmt.Errorf("while: %w", fail(3, "", "no model")), 3, "ganglion: error: no model\n"},
		{"joined", context.Background(), errors.Join(plain, plain), 1, "ganglion: error: plain; plain\n"},
		{"request", context.Background(), appliance.Errorf(appliance.CodeInvalid, "top_p", "top_p is 7"), 2, "ganglion: error: top_p is 7\n"},
		{"no model", context.Background(), appliance.Errorf(appliance.CodeNoModel, "", "none"), 3, "ganglion: error: none\n"},
		{"internal", context.Background(), appliance.Errorf(appliance.CodeInternal, "", "internal error"), 1, "ganglion: error: internal error\n"},
		{"memory", context.Background(), fmt.Errorf("engine: %w", engine.ErrTooLarge), 5, "ganglion: error: engine: not enough memory\nganglion: hint: a smaller --context or fewer --slots need less memory\n"},
		{"backend", context.Background(), fmt.Errorf("gpu: %w", gpu.ErrBackend), 4, "ganglion: error: gpu: backend not available\nganglion: hint: `ganglion doctor` shows what this version can compute on\n"},
		{"model and memory", context.Background(), modelError(fmt.Errorf("engine: %w", engine.ErrTooLarge)), 5, "ganglion: error: engine: not enough memory\nganglion: hint: a smaller --context or fewer --slots need less memory\n"},
		{"interrupted", cancelled, fmt.Errorf("run: %w", context.Canceled), 130, ""},
		{"another error at the end", cancelled, plain, 1, "ganglion: error: plain\n"},
		{"steering", context.Background(), errors.New("a\x1b[2Jb\rc\u009bd"), 1, "ganglion: error: a\ufffd[2Jb\ufffdc\ufffdd\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			code := (&env{stderr: &b}).report(tt.ctx, tt.err)
			if code != tt.code || b.String() != tt.want {
				t.Errorf("code %d, %q; want %d, %q", code, b.String(), tt.code, tt.want)
			}
		})
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	tests := []struct {
		name       string
		tty, quiet bool
		want       bool
	}{
		{"terminal", true, false, true},
		{"file", false, false, false},
		{"quiet", true, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			update, end := (&env{stderr: &b, stderrTTY: tt.tty, quiet: tt.quiet}).progress("loading m")
			if (update != nil) != tt.want {
				t.Fatalf("a bar: %v, want %v", update != nil, tt.want)
			}
			if update != nil {
				update(1<<20, 4<<20)
			}
			end()
			if tt.want && !strings.HasSuffix(b.String(), "\x1b[2K\r") && runtime.GOOS != "windows" {
				t.Errorf("the bar is still there: %q", b.String())
			}
			if got := strings.Contains(b.String(), "loading m"); got != tt.want {
				t.Errorf("drawn: %v, want %v: %q", got, tt.want, b.String())
			}
		})
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext ü 🦙":        "plain\n\ttext ü 🦙",
		"\x1b]0;title\a\r\x00\x7f": "\ufffd]0;title\ufffd\ufffd\ufffd\ufffd",
		"\u009b31m":                "\ufffd31m",
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 253113024: "241.4 MiB", 1 << 40: "1.0 TiB", 1 << 52: "4096.0 TiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
