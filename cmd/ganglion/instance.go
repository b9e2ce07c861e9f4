package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cli/browser"
)

// instance is the note a desktop start leaves for the next one, so that a second
// double-click opens the page of the first. It holds the session token and is
// readable by its owner alone.
type instance struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	PID   int    `json:"pid"`

	path string
}

// newInstance is a note about this process; its address is known later.
func newInstance(path string) *instance {
	return &instance{Token: newToken(), PID: os.Getpid(), path: path}
}

func instancePath(stateDir string) string { return filepath.Join(stateDir, "instance.json") }

// newToken draws the session token of the page.
func newToken() string {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err) // crypto/rand never fails on the systems we support
	}
	return hex.EncodeToString(b)
}

// running returns the instance that answers at the noted address, if one does.
func running(ctx context.Context, path string) (*instance, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	in := &instance{path: path}
	if json.Unmarshal(b, in) != nil || !strings.HasPrefix(in.URL, "http://127.0.0.1:") {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL+"/v1/status", nil)
	if err != nil {
		return nil, false
	}
	req.Header.Set("Authorization", "Bearer "+in.Token)
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, false
	}
	defer r.Body.Close()
	return in, r.StatusCode == http.StatusOK
}

// save writes the note with an atomic rename.
func (in *instance) save() error {
	if err := os.MkdirAll(filepath.Dir(in.path), 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	tmp := in.path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, in.path)
}

// remove takes the note back.
func (in *instance) remove() error {
	err := os.Remove(in.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// page is the address the browser is sent to: the token travels in the fragment,
// which no server and no log sees.
func (in *instance) page() string { return in.URL + "/#token=" + in.Token }

// openBrowser shows a page: with $BROWSER when it is set, else with what the
// system has. It does not wait for the browser to end.
func (e *env) openBrowser(ctx context.Context, url string) error {
	if name := e.getenv("BROWSER"); name != "" {
		words := strings.Fields(name)
		cmd := exec.Command(words[0], append(words[1:], url)...)
		if err := cmd.Start(); err != nil {
			return err
		}
		go cmd.Wait() //nolint:errcheck // only reaps the child; the browser is on its own
		return nil
	}
	browser.Stdout, browser.Stderr = e.stderr, e.stderr
	return browser.OpenURL(url)
}
