package abi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names of custom sections.
const (
	SectionManifest  = "ganglion.manifest"
	SectionSignature = "ganglion.sig"
	SectionTests     = "ganglion.tests"
	SectionAsset     = "ganglion.asset:" // and the name
)

// Slot is the place of a plugin in the order of a step.
type Slot string

// The slots, in their order.
const (
	SlotConstrain   Slot = "constrain"
	SlotBias        Slot = "bias"
	SlotTruncate    Slot = "truncate"
	SlotTemperature Slot = "temperature"
	SlotChoose      Slot = "choose"
	SlotText        Slot = "text"
)

// Slots lists the slots in their order.
var Slots = []Slot{SlotConstrain, SlotBias, SlotTruncate, SlotTemperature, SlotChoose, SlotText}

// The views of logits.
const (
	LogitsNone   = "none"
	LogitsTop    = "topn"
	LogitsGather = "gather"
	LogitsFull   = "full"
)

// HistoryKind is a view of the history.
type HistoryKind uint8

// The views of the history.
const (
	HistoryNone HistoryKind = iota
	HistoryGenerated
	HistoryAll
	HistoryLast
)

// History is which tokens a plugin wants to see.
type History struct {
	Kind HistoryKind
	N    int // of HistoryLast
}

// Draft is what a plugin does when tokens are guessed ahead.
type Draft string

// The capabilities.
const (
	CapKV     = "kv"
	CapClock  = "clock"
	CapAuxSeq = "aux-seq"
	CapVocab  = "vocab"
	CapWASI   = "wasi-stubs"
)

// The policies of drafts and errors.
const (
	DraftSnapshot Draft = "snapshot"
	DraftSelf     Draft = "self"
	DraftRefuse   Draft = "refuse"

	OnErrorFail    = "fail"
	OnErrorSkip    = "skip"
	OnErrorRestart = "restart"
)

// Bounds of a manifest.
const (
	MaxManifestBytes = 64 << 10
	MaxCandidates    = 4096
	MaxEdits         = 4096
	MaxGather        = 4096
	MaxHistoryLast   = 65536
	MaxHoldback      = 64
	MaxMemoryPages   = 256 // that a manifest may ask for
	HardMemoryPages  = 1024
	MaxStepFuel      = 64_000_000
	MaxOpenFuel      = 400_000_000
	MaxForced        = 256     // tokens a step
	MaxAuxiliary     = 2       // auxiliary sequences of a request
	MaxTextBytes     = 4 << 10 // that a text hook is called with
)

// defaultFuel is the fuel of a call, by hook.
var defaultFuel = [Hooks]int64{
	HookOpen: MaxOpenFuel, HookPrompt: 100_000_000, HookEnd: 20_000_000,
	HookPlan: 2_000_000, HookLogits: 2_000_000, HookChoose: 2_000_000, HookAccept: 2_000_000,
	HookText: 2_000_000, HookRollback: 2_000_000, HookRun: 2_000_000,
}

// View is what a plugin wants to see.
type View struct {
	Logits    string
	N         int     // candidates
	Gather    []int32 // token ids
	GatherEOG bool    // and the tokens that end a text
	Mask      bool
	Edits     int
	History   History
	Text      bool
	Holdback  int
}

// Manifest is what a plugin says about itself, defaults filled in. It is not changed
// after ParseManifest.
type Manifest struct {
	Name, Version                         string
	Title, Description, License, Homepage string

	Slot            Slot
	Hooks           HookSet // 0: those that are exported; of a plugin that is loaded never
	View            View
	Truncates       bool
	ArgmaxInvariant bool
	Draft           Draft
	Capabilities    []string
	MemoryPages     int
	Fuel            [Hooks]int64
	OnError         string
	Schema          *Schema

	MinVocab   int
	Tokenizers []string // empty: any
}

// FitsTokenizer tells whether the plugin is for models with a kind of tokenizer.
func (m *Manifest) FitsTokenizer(kind string) bool {
	return len(m.Tokenizers) == 0 || slices.Contains(m.Tokenizers, kind)
}

// Can tells whether a capability is asked for.
func (m *Manifest) Can(capability string) bool { return slices.Contains(m.Capabilities, capability) }

var (
	nameRule = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	// versionRule is the grammar of semver.org 2.0.0.
	versionRule = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(\+([0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*))?$`)
)

// ParseManifest reads a manifest by the rules of ABI.md.
func ParseManifest(b []byte) (*Manifest, error) {
	if len(b) > MaxManifestBytes {
		return nil, fmt.Errorf("abi: manifest: %d bytes, at most %d", len(b), MaxManifestBytes)
	}
	v, err := ParseJSON(b)
	if err != nil {
		return nil, fmt.Errorf("abi: manifest: %w", err)
	}
	o, err := object(v, "")
	if err != nil {
		return nil, fmt.Errorf("abi: manifest: %w", err)
	}
	m := &Manifest{}
	m.identity(o)
	m.hooks(o)
	m.view(o.object("view"), o)
	m.policy(o)
	m.limits(o.object("limits"), o)
	c := o.object("model")
	m.MinVocab = c.int("min_vocab", 0, 0, 1<<28)
	m.Tokenizers = names(c, "tokenizers", "bpe", "spm", "unigram", "wpm")
	o.keep(c.done())
	m.config(o)
	if err := o.done(); err != nil {
		return nil, fmt.Errorf("abi: manifest: %w", err)
	}
	return m, nil
}

func (m *Manifest) identity(o *members) {
	if v := o.text("abi", 16); v != "1.0" {
		major, _, _ := strings.Cut(v, ".")
		if major == "1" {
			o.fail("abi", "%q is newer than this Ganglion, which has 1.0", v)
		} else {
			o.fail("abi", "%q is not 1.0", v)
		}
	}
	if m.Name = o.text("name", 64); !nameRule.MatchString(m.Name) {
		o.fail("name", "%q is not a name of a-z, 0-9 and -", m.Name)
	}
	if m.Version = o.text("version", 64); !versionRule.MatchString(m.Version) {
		o.fail("version", "%q is no semantic version", m.Version)
	}
	m.Title, m.Description = o.text("title", 200), o.text("description", 8<<10)
	m.License, m.Homepage = o.text("license", 200), o.text("homepage", 500)
	slots := make([]string, len(Slots))
	for i, s := range Slots {
		slots[i] = string(s)
	}
	m.Slot = Slot(o.oneOf("slot", "", slots...))
}

func (m *Manifest) hooks(o *members) {
	for i, v := range o.list("hooks", Hooks) {
		name, _ := v.(string)
		h := HookNamed(name)
		if h == 0 || h == HookOpen {
			o.failAt("hooks", i, "is no hook")
			return
		}
		m.Hooks = m.Hooks.With(h)
	}
	if m.Hooks.Has(HookRun) && !m.Hooks.Has(HookPlan) && !m.Hooks.Has(HookLogits) && !m.Hooks.Has(HookAccept) {
		o.fail("hooks", "run needs plan, logits or accept as its events")
	}
}

func (m *Manifest) view(v, o *members) {
	w := &m.View
	w.Logits = v.oneOf("logits", LogitsNone, LogitsNone, LogitsTop, LogitsGather, LogitsFull)
	n := 0
	if w.Logits == LogitsTop {
		n = 256
	}
	w.N = v.int("n", n, 0, MaxCandidates)
	if w.Logits == LogitsTop && w.N == 0 {
		v.fail("n", "is 0 with topn")
	}
	for i, g := range v.list("gather", MaxGather) {
		id, ok := number(g)
		switch {
		case g == "eog":
			w.GatherEOG = true
		case ok && id >= 0 && id < 1<<28 && id == float64(int32(id)):
			w.Gather = append(w.Gather, int32(id))
		default:
			v.failAt("gather", i, "is neither a token id nor \"eog\"")
		}
	}
	w.Mask = v.bool("mask")
	w.Edits = v.int("edits", 0, 0, MaxEdits)
	w.Text = v.bool("text")
	w.Holdback = v.int("holdback", 0, 0, MaxHoldback)
	switch h := v.text("history", 16); h {
	case "", "none":
	case "generated":
		w.History.Kind = HistoryGenerated
	case "all":
		w.History.Kind = HistoryAll
	default:
		last, ok := strings.CutPrefix(h, "last:")
		n, err := strconv.Atoi(last)
		if !ok || err != nil || n < 1 || n > MaxHistoryLast || strconv.Itoa(n) != last {
			v.fail("history", "is not none, generated, all or last:N with N from 1 to %d", MaxHistoryLast)
		}
		w.History = History{HistoryLast, n}
	}
	o.keep(v.done())
}

func (m *Manifest) policy(o *members) {
	m.Truncates, m.ArgmaxInvariant = o.bool("truncates"), o.bool("argmax_invariant")
	if err := m.CheckInvariant(); err != nil {
		o.fail("argmax_invariant", "%v", err)
	}
	draft := DraftSnapshot
	if m.Hooks.Has(HookRun) {
		draft = DraftRefuse
	}
	m.Draft = Draft(o.oneOf("draft", string(draft), string(DraftSnapshot), string(DraftSelf), string(DraftRefuse)))
	if m.Hooks.Has(HookRun) && m.Draft == DraftSnapshot {
		o.fail("draft", "a program in run cannot be snapshot")
	}
	m.Capabilities = names(o, "capabilities", CapKV, CapClock, CapAuxSeq, CapVocab, CapWASI)
	onError := OnErrorSkip
	if m.Slot == SlotConstrain || m.Slot == SlotText {
		onError = OnErrorFail
	}
	m.OnError = o.oneOf("on_error", onError, OnErrorFail, OnErrorSkip, OnErrorRestart)
}

// CheckInvariant refuses a plugin that says it never changes the likeliest token and has a
// hook by which it may: such a promise would keep it out of requests that it acts on.
func (m *Manifest) CheckInvariant() error {
	for _, h := range [...]Hook{HookPrompt, HookPlan, HookText} {
		if m.ArgmaxInvariant && m.Hooks.Has(h) {
			return fmt.Errorf("argmax_invariant with the hook %s", h)
		}
	}
	return nil
}

func (m *Manifest) limits(l, o *members) {
	m.MemoryPages = l.int("memory_pages", 64, 1, MaxMemoryPages)
	m.Fuel = defaultFuel
	f := l.object("fuel")
	for h := HookOpen; h < Hooks; h++ {
		m.Fuel[h] = int64(f.int(h.String(), int(m.Fuel[h]), 1, max(MaxStepFuel, int(defaultFuel[h]))))
	}
	l.keep(f.done())
	o.keep(l.done())
}

func (m *Manifest) config(o *members) {
	v, ok := o.take("config_schema")
	if !ok {
		v = map[string]any{"type": "object", "additionalProperties": false}
	}
	s, err := parseSchema(v, "/config_schema", newBudget())
	if err == nil && s.types != typeObject {
		err = faultf("/config_schema/type", "is not \"object\"")
	}
	o.keep(err)
	m.Schema = s
}

// names reads a list of different words.
func names(o *members, name string, allowed ...string) (out []string) {
	for i, v := range o.list(name, len(allowed)) {
		s, _ := v.(string)
		if !slices.Contains(allowed, s) || slices.Contains(out, s) {
			o.failAt(name, i, "is not one of %s, or stands twice", strings.Join(allowed, ", "))
			return out
		}
		out = append(out, s)
	}
	return out
}
