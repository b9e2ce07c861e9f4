package main

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// F78: a taken port is handled in plain words.

// takePort listens on a port with a free one after it.
func takePort(t *testing.T) (address string, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), l.Addr().(*net.TCPAddr).Port
}

// A port that was named by hand is an error with the reason.
func TestNamedPortTaken(t *testing.T) {
	address, port := takePort(t)
	for name, p := range map[string]*process{
		"flag":        launch(t, cleanEnv(t.TempDir()), "serve", "--listen", address),
		"environment": launch(t, cleanEnv(t.TempDir(), "GANGLION_LISTEN="+address), "serve"),
		"desktop":     launch(t, cleanEnv(t.TempDir(), "BROWSER=false"), "--listen", address),
	} {
		if code := p.wait(); code != exitFailure {
			t.Errorf("%s: ended with code %d, want %d", name, code, exitFailure)
		}
		out := p.output()
		if !strings.Contains(out, "ganglion: error: cannot listen on "+address+": address already in use") ||
			!strings.Contains(out, "ganglion: hint: another program has this port") {
			t.Errorf("%s: port %d:\n%s", name, port, out)
		}
	}
}

// A port that nobody named gives way to the next free one, which is shown. The
// settings stand in for a command line without --listen: the built-in port must not
// be taken from whoever has it.
func TestUnnamedPortTaken(t *testing.T) {
	address, port := takePort(t)
	var stderr strings.Builder
	s := &settings{e: &env{stderr: &stderr}}
	s.Listen = address
	l, err := s.listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := l.Addr().(*net.TCPAddr).Port
	if got <= port || got > port+nearbyPorts {
		t.Errorf("port %d instead of %d, want one of the next %d", got, port, nearbyPorts)
	}
	want := "ganglion: " + address + " cannot be had (address already in use); using 127.0.0.1:" + strconv.Itoa(got) + " instead\n"
	if stderr.String() != want {
		t.Errorf("printed %q, want %q", stderr.String(), want)
	}
	// And with that one taken too.
	next, err := s.listen()
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if p := next.Addr().(*net.TCPAddr).Port; p <= got {
		t.Errorf("port %d after %d", p, got)
	}
}

// Port 0 is any free one; two servers share one log.
func TestPortZero(t *testing.T) {
	home := t.TempDir()
	p, q := serveTiny(t, home), serveTiny(t, home)
	if p.url == q.url {
		t.Errorf("both listen on %s", p.url)
	}
	p.answers()
	q.answers()
	p.stop()
	q.answers()
	q.stop()
	if rows := logRows(t, filepath.Join(home, "data", "ganglion.db"), ""); len(rows) != 3 {
		t.Errorf("%d rows of two servers, want 3", len(rows))
	}
}
