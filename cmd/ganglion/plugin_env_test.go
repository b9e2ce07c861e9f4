package main

import (
	"slices"
	"testing"

	"ganglion/plugins/host"
)

func TestCompilersSeeNoKeys(t *testing.T) {
	got := compilerEnv([]string{"PATH=/bin", "TMPDIR=/t", "API_KEY=secret", "GOCOVERDIR=/c", "HOME=/root"})
	if !slices.Equal(got, []string{"TMPDIR=/t", "GOCOVERDIR=/c"}) {
		t.Errorf("%q", got)
	}
}

func TestNamesakesHaveStoresOfTheirOwn(t *testing.T) {
	all, err := host.OpenStore("")
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Commit("watermark", map[string][]byte{"key": []byte("secret")}); err != nil {
		t.Fatal(err)
	}
	other := ownStore{all, ".unsigned"}
	if got := other.Read("watermark"); len(got) != 0 {
		t.Errorf("it reads %q", got)
	}
	if err := other.Commit("watermark", map[string][]byte{"key": []byte("mine")}); err != nil {
		t.Fatal(err)
	}
	if a, b := all.Read("watermark")["key"], other.Read("watermark")["key"]; string(a) != "secret" || string(b) != "mine" {
		t.Errorf("%q and %q", a, b)
	}
}
