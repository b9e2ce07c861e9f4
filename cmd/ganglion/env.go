package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// env is what a command line sees of the process; tests hand in their own.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	executable     string // path of the running binary, empty when unknown
	stdinTTY       bool
	stdoutTTY      bool
	stderrTTY      bool
	quiet, verbose bool
}

func osEnv() *env {
	exe, err := os.Executable()
	if err != nil {
		exe = ""
	}
	return &env{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, executable: exe,
		stdinTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		stdoutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		stderrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
}

// note prints a line for people, unless --quiet.
func (e *env) note(format string, args ...any) {
	if !e.quiet {
		fmt.Fprintf(e.stderr, "ganglion: %s\n", line(fmt.Sprintf(format, args...)))
	}
}

// logger writes what the packages report: warnings and errors, with --verbose
// everything. None of it holds text of a request.
func (e *env) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case e.verbose:
		level = slog.LevelDebug
	case e.quiet:
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: level}))
}

// json prints a value as one line of JSON, with text as it is.
func (e *env) json(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// progress returns a callback that draws a bar of bytes on a terminal, and a
// function that takes it away. Elsewhere the callback is nil.
func (e *env) progress(what string) (update func(done, total int64), end func()) {
	if !e.stderrTTY || e.quiet {
		return nil, func() {}
	}
	var bar *progressbar.ProgressBar
	update = func(done, total int64) {
		if bar == nil {
			bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(e.stderr), progressbar.OptionSetDescription(line(what)),
				progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionUseANSICodes(runtime.GOOS != "windows")) // not every console there knows them
		}
		_ = bar.Set64(done) // a bar that cannot be drawn is no error of the work
	}
	return update, func() {
		if bar != nil {
			_ = bar.Clear() // the line is for what comes next
		}
	}
}
