package main

import (
	"slices"
	"testing"

	"ganglion/appliance"
)

// A server told to listen at a name answers to that name; an address adds none.
func TestListenNameIsServed(t *testing.T) {
	for listen, want := range map[string][]string{
		"box.lan:8080":   {"other", "box.lan"},
		"BOX.lan:0":      {"other", "box.lan"},
		"127.0.0.1:8080": {"other"},
		"[::1]:8080":     {"other"},
		":8080":          {"other"},
		"nonsense":       {"other"},
	} {
		s := &settings{Settings: appliance.Settings{Listen: listen, AllowedHosts: []string{"other"}}}
		if got := s.hosts(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", listen, got, want)
		}
	}
}
