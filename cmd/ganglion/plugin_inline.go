package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ganglion/appliance"
	"ganglion/plugins/abi"
	"ganglion/plugins/host"
)

// Bounds of code that requests bring.
const (
	maxInlineBytes = 1 << 20
	keptInline     = 8 // plugins, and verdicts on code that is none, that stay for the next request
	waitingInline  = 4 // requests whose code is loaded or waits for that
	inlineVerdict  = time.Minute
)

// inlinePlugins are plugins whose code requests brought, the latest of them: the same code
// is mostly brought again. It is loaded one at a time, in a child process, beside the
// requests that run.
type inlinePlugins struct {
	turn    chan struct{} // holds one token while code is loaded
	waiting chan struct{}

	mu   sync.Mutex
	kept []inlinePlugin // the latest first
}

// inlinePlugin is what code turned out to be.
type inlinePlugin struct {
	hash   [sha256.Size]byte // of the code as it was brought
	plugin *host.Plugin      // nil: it is none
	err    error
	at     time.Time
}

func newInlinePlugins() inlinePlugins {
	return inlinePlugins{turn: make(chan struct{}, 1), waiting: make(chan struct{}, waitingInline)}
}

// Inline implements appliance.Plugins.
func (p *plugins) Inline(ctx context.Context, code string) (appliance.Plugin, error) {
	hash := sha256.Sum256([]byte(code))
	switch found, err := p.inline.find(hash); {
	case err != nil:
		return nil, err
	case found != nil:
		return hosted{found, p, new(host.LogCount)}, nil
	}
	file, script, err := readInline(code)
	if err != nil {
		return nil, err
	}
	select {
	case p.inline.waiting <- struct{}{}:
		defer func() { <-p.inline.waiting }()
	default:
		e := appliance.Errorf(appliance.CodeQueueFull, "plugins", "the code of %d requests waits to be loaded already; try again later", waitingInline)
		e.RetryAfter = time.Second
		return nil, e
	}
	select {
	case p.inline.turn <- struct{}{}:
		defer func() { <-p.inline.turn }()
	case <-ctx.Done():
		return nil, appliance.Errorf(appliance.CodeCancelled, "", "the request was cancelled")
	}
	switch found, err := p.inline.find(hash); { // another request may have brought it meanwhile
	case err != nil:
		return nil, err
	case found != nil:
		return hosted{found, p, new(host.LogCount)}, nil
	}
	found, err := p.registry.Load(ctx, file, script)
	if err == nil {
		if err = mayBeInline(found.Manifest()); err != nil {
			found.Close()
			found = nil
		}
	}
	if ctx.Err() != nil {
		if found != nil {
			found.Close()
		}
		return nil, appliance.Errorf(appliance.CodeCancelled, "", "the request was cancelled")
	}
	p.inline.keep(inlinePlugin{hash: hash, plugin: found, err: err, at: time.Now()})
	if err != nil {
		return nil, err
	}
	return hosted{found, p, new(host.LogCount)}, nil
}

// readInline reads the code of a request.
func readInline(code string) (file []byte, script bool, err error) {
	if strings.HasPrefix(strings.TrimLeft(code, " \t\r\n\ufeff"), "/*") {
		if len(code) > maxInlineBytes {
			return nil, true, fmt.Errorf("it has %d bytes, at most %d", len(code), maxInlineBytes)
		}
		return []byte(code), true, nil
	}
	if n := base64.StdEncoding.DecodedLen(len(code)); n > maxInlineBytes+2 {
		return nil, false, fmt.Errorf("it has about %d bytes, at most %d", n, maxInlineBytes)
	}
	file, err = base64.StdEncoding.DecodeString(code)
	switch {
	case err != nil || !bytes.HasPrefix(file, []byte("\x00asm")):
		return nil, false, errors.New(`it is neither a WebAssembly file in base64 nor a script that begins with "/* ganglion {…} */"`)
	case len(file) > maxInlineBytes:
		return nil, false, fmt.Errorf("it has %d bytes, at most %d", len(file), maxInlineBytes)
	}
	return file, false, nil
}

// mayBeInline refuses all capabilities: nobody looked at the code before it runs.
func mayBeInline(m *abi.Manifest) error {
	if len(m.Capabilities) > 0 {
		return fmt.Errorf("it asks for the capability %s, and code of a request gets none", strings.Join(m.Capabilities, ", "))
	}
	return nil
}

// find returns what code is known to be, for the caller to release; nothing where it is not
// known.
func (p *inlinePlugins) find(hash [sha256.Size]byte) (*host.Plugin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.kept, func(k inlinePlugin) bool { return k.hash == hash })
	if i < 0 {
		return nil, nil
	}
	k := p.kept[i]
	p.kept = slices.Delete(p.kept, i, i+1)
	if k.plugin == nil && time.Since(k.at) > inlineVerdict {
		return nil, nil // it may have been the machine's fault
	}
	p.kept = slices.Insert(p.kept, 0, k)
	if k.plugin != nil && !k.plugin.Retain() {
		return nil, errors.New("the server is shutting down")
	}
	return k.plugin, k.err
}

// keep keeps what code turned out to be, with a reference of its own, in the place of what
// was not asked for longest.
func (p *inlinePlugins) keep(k inlinePlugin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.plugin != nil && !k.plugin.Retain() {
		return
	}
	p.kept = slices.Insert(p.kept, 0, k)
	for len(p.kept) > keptInline {
		last := len(p.kept) - 1
		if gone := p.kept[last].plugin; gone != nil {
			gone.Close() // requests that run it hold it
		}
		p.kept = p.kept[:last]
	}
}

// close lets go of all of them.
func (p *inlinePlugins) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if k.plugin != nil {
			k.plugin.Close()
		}
	}
	p.kept = nil
}
