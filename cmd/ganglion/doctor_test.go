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

// The doctor tells what came of kernels that make use of a card's abilities, which are tried
// unless the settings say otherwise, and that a child which ends badly over one of them costs
// nothing else.
func TestDoctorTellsOfVariants(t *testing.T) {
	able := probing(t, `case "$*" in
*"try vulkan"*subgroup) echo '{"step":"vocabulary"}'
	echo '{"trial":{"needs":"subgroup","kernels":[{"kernel":"heads_max_subgroup","ms":1,"base_ms":2},{"kernel":"heads_top_subgroup","ms":2,"base_ms":1}]}}' ;;
*"try vulkan"*) echo '{"step":"matmul/Q4_K"}'; exit 3 ;;
*) echo '{"opened":{"Info":{"API":"vulkan","Name":"Card","Driver":"driver 1","ID":"card 1"},"Caps":{"Subgroup":16,"Dot4":true}}}'
	echo '{"answer":{"name":"norms","mode":"fast"}}' ;;
esac`)
	home := t.TempDir()
	const right = "ok gpu Card through vulkan: available: 1 known answers are right"
	tried := right + "; 1 of 2 kernels are faster with subgroup, heads_max_subgroup 2.00 times; dot4 is not used: the driver ended the probe: exit status 3, after matmul/Q4_K"
	for _, tt := range []struct {
		what  string
		flags []string
		want  string
	}{
		{"none", []string{"--gpu-variants", "none"}, right},
		{"tried now", nil, tried},
		{"kept", []string{"--gpu-variants", "all"}, tried},
	} {
		if got := strings.Join(strings.Fields(doctor(t, able, home, tt.flags...)), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}
