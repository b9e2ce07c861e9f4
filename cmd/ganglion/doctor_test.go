package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// probing is a program that answers as the child of a probe does: there is one card, and
// what answer says when it is tested.
func probing(t *testing.T, answer string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the child is a shell script")
	}
	path := filepath.Join(t.TempDir(), "ganglion")
	text := `#!/bin/sh
case "$*" in
*"list vulkan") echo '{"device":{"API":"vulkan","Name":"Card","Driver":"driver 1","ID":"card 1"}}' ;;
*"list "*) ;;
*) ` + answer + ` ;;
esac
echo '{"done":true}'
`
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// doctor runs the verb and gives what it says of the card.
func doctor(t *testing.T, executable, home string, flags ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	e := &env{stdout: &out, stderr: &errs, executable: executable, getenv: func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}}
	run(context.Background(), e, append([]string{"doctor", "--listen", "127.0.0.1:0"}, flags...))
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "Card through vulkan") {
			return line
		}
	}
	t.Fatalf("nothing of the card in %s%s", &out, &errs)
	return ""
}

// The doctor tells why a device is quarantined, tomorrow too, and tests it again when it
// is asked to.
func TestDoctorTellsOfQuarantinedDevices(t *testing.T) {
	home := t.TempDir()
	right := probing(t, `echo '{"answer":{"name":"norms","mode":"fast"}}'`)
	wrong := probing(t, `echo '{"answer":{"name":"norms","mode":"fast","fault":"row 3: a tile is wrong"}}'`)
	for _, tt := range []struct {
		what, executable string
		flags            []string
		want             string
	}{
		{"a wrong answer", wrong, nil, "note  gpu  Card through vulkan: quarantined: norms: row 3: a tile is wrong"},
		{"what is kept", right, nil, "note  gpu  Card through vulkan: quarantined: norms: row 3: a tile is wrong"},
		{"a test again", right, []string{"--retest"}, "ok  gpu  Card through vulkan: available: 1 known answers are right"},
		{"the partner: nothing wrong", right, nil, "ok  gpu  Card through vulkan: available: 1 known answers are right"},
	} {
		if got := strings.Join(strings.Fields(doctor(t, tt.executable, home, tt.flags...)), " "); got != strings.Join(strings.Fields(tt.want), " ") {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}
