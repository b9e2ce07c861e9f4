package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/wasm"
	"ganglion/web/api"
)

// versionOf is the built-in min-p under another name, in a version of its own.
func versionOf(t *testing.T, n int, sections ...string) string {
	t.Helper()
	file, err := readPlugin("../../plugins/builtin/wasm/min-p.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	manifest, _ := m.Custom(abi.SectionManifest)
	text := strings.Replace(string(manifest), `"min-p"`, `"swapped"`, 1)
	text = strings.Replace(text, `"1.0.0"`, fmt.Sprintf(`"1.0.%d"`, n), 1)
	if file, err = wasm.DropCustom(file, abi.SectionManifest); err != nil {
		t.Fatal(err)
	}
	file = wasm.AppendCustom(file, abi.SectionManifest, []byte(text))
	for i := 0; i < len(sections); i += 2 {
		if file, err = wasm.DropCustom(file, sections[i]); err != nil {
			t.Fatal(err)
		}
		file = wasm.AppendCustom(file, sections[i], []byte(sections[i+1]))
	}
	return string(file)
}

// TestSwapsUnderRequests replaces a plugin a hundred times while clients complete and
// stream with it: no request fails, and each runs one version from its beginning to its
// end. Files that are no plugins come in between, over HTTP and in the folder: they never
// take the place of the version that works.
func TestSwapsUnderRequests(t *testing.T) {
	needsCompiler(t)
	const swaps, clients = 100, 3
	home := t.TempDir()
	p := serveTiny(t, home, "--plugin-upload")
	put := func(file string, want int) {
		t.Helper()
		if status, _, body := p.request("PUT", "/v1/plugins/files/swapped.wasm", file, asBytes, octetStream); status != want {
			t.Fatalf("status %d, want %d: %s", status, want, body)
		}
	}
	ask := func(stream bool) (version string, err error) {
		status, header, body, err := p.send("POST", "/v1/completions", fmt.Sprintf(
			`{"prompt":"abc","max_completion_tokens":24,"temperature":1,"stream":%v,"plugins":[{"name":"swapped","on_error":"fail"}]}`, stream), "Ganglion-Details", "1")
		said := header.Get("Ganglion-Plugins")
		_, version, found := strings.Cut(said, "swapped@")
		if stream {
			_, version, found = strings.Cut(body, `"name":"swapped","version":"`)
		}
		version = version[:max(0, strings.IndexAny(version+" ", ` "`))]
		if err == nil && (status != 200 || !found || stream && (strings.Contains(body, `"error"`) || !strings.Contains(body, "[DONE]"))) {
			err = fmt.Errorf("status %d, %q: %.300s", status, said, body)
		}
		return version, err
	}
	put(versionOf(t, 0), 201)
	var (
		mu               sync.Mutex
		answered, failed int
		seen             = map[string]int{}
		latest           int // version that was put before a request began
		group            sync.WaitGroup
	)
	done := make(chan struct{})
	for c := range clients {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				least := latest
				mu.Unlock()
				version, err := ask(c == 0)
				var n int
				if _, e := fmt.Sscanf(version, "1.0.%d", &n); err == nil && (e != nil || n < least) {
					err = fmt.Errorf("version %q after 1.0.%d was put", version, least)
				}
				mu.Lock()
				seen[version]++
				if answered++; err != nil {
					if failed++; failed < 4 {
						t.Error(err)
					}
				}
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	bad := versionOf(t, 1000, abi.SectionTests, `{"steps":[{"hook":"logits","want":{"actions":["FULL"]}}]}`+"\n")
	for n := 1; n <= swaps; n++ {
		put(versionOf(t, n), 201)
		mu.Lock()
		latest = n
		mu.Unlock()
		if n%20 == 10 {
			put(bad, 400)
			put("no plugin", 400)
		}
	}
	took := time.Since(began)
	// The same in the folder.
	place := filepath.Join(home, "data", "plugins", "swapped.wasm")
	if err := os.WriteFile(place, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	rejected := false
	for until := time.Now().Add(patience); !rejected && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		var list api.PluginList
		p.get("/v1/plugins", &list)
		for _, i := range list.Plugins {
			if i.Name == "swapped" && i.Version != fmt.Sprintf("1.0.%d", swaps) {
				t.Errorf("version %s is listed", i.Version)
			}
		}
		rejected = strings.Contains(fmt.Sprintf("%+v", list), "golden test")
	}
	if !rejected {
		t.Error("nothing says that the file in the folder is rejected")
	}
	for range 5 {
		if version, err := ask(false); err != nil || version != fmt.Sprintf("1.0.%d", swaps) {
			t.Errorf("after the bad file: version %s, %v", version, err)
		}
	}
	close(done)
	group.Wait()
	t.Logf("%d swaps in %v, %d answers, %d failed, %d versions", swaps, took, answered, failed, len(seen))
	if failed != 0 || answered < swaps/2 || len(seen) < swaps/10 {
		t.Errorf("of %d answers %d failed, of %d versions", answered, failed, len(seen))
	}
	// The partner: a request that fails is counted as one.
	if status, _, body := p.request("PUT", "/v1/plugins/files/broken.js", broken, asBytes, octetStream); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := p.complete(askForBroken); status == 200 {
		t.Errorf("a failure is no failure here: %s", body)
	}
}
