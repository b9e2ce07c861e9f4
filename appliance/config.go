package appliance

import (
	"time"
)

// Settings are everything a user can set, resolved: see LoadSettings. The table in
// config_table.go describes each.
type Settings struct {
	Model       string   // model file; empty: the first one found
	MMProj      string   // encoder file; empty: the one beside the model, NoEncoder: none
	ImageTokens int      // of one picture, at most
	LoRA        []LoRA   // adapters to load with it
	ModelDirs   []string // more folders to look for models in
	MediaDir    string   // folder whose files requests may name; empty: they may name none

	// Bounds of requests and of what they carry.
	BodyBytes    int64 // of a request
	MediaBytes   int64 // of one item, and twice as much of all of a request
	ImagePixels  int   // of one picture
	MediaSeconds int   // of one sound or film
	VideoFrames  int   // of one film that the model sees

	Data string // folder of models and log; empty: the system's place

	Listen         string   // HOST:PORT
	Key            string   // API key; empty: none is asked for
	KeyFile        string   // where Key was read from, empty when it was not
	AllowedHosts   []string // more names this server answers to
	AllowedOrigins []string // sites whose pages may call the API

	Backend      string // "auto" or a backend's name
	Device       string // name or ID of a GPU; empty: any
	DeviceMemory int64  // bytes that a model may take of it; 0: what a discrete one has
	// PromptBackend and PromptDevice are where prompts are read, as Backend and Device are
	// where tokens are written; "auto" is another device where that was measured to be
	// faster and nothing else is named, "same" is never another one.
	PromptBackend, PromptDevice string
	GPUVariants                 string // of gpu/probe: "auto", "all" or "none"
	Numerics                    string // "fast" or "exact"
	KV                          string // of ops.KVTypes: the type of cached keys and values
	Threads                     int
	Context                     int // tokens per sequence; 0: what the model was trained for, at most 4096
	Slots                       int // sequences decoded at once
	Queue                       int // requests that may wait for a slot

	CacheTokens   int   // of finished sequences, kept beyond what the slots can need
	SnapshotBytes int64 // for snapshots of recurrent state; 0: the engine's default

	Speculate  string // "auto" or a Speculation; see Settings.Speculation
	DraftModel string // model file that guesses
	DraftMax   int    // tokens guessed at once

	DefaultMaxTokens  int
	ParseSpecial      bool
	Temperature, TopP *float64 // nil: the model file's, else built in
	MinP              *float64
	TopK              *int64

	PluginDir       string   // folder of plugins; empty: the system's place
	Plugins         string   // of requests that name none, as the header Ganglion-Plugins
	ModelPlugins    []string // MODEL=PLUGINS: the same for one model
	RequiredPlugins string   // of every request
	ShadowPlugins   string   // that watch every request and change nothing
	PluginSigning   string   // "unsigned-ok", "warn" or "require"
	PluginUpload    bool     // the page may bring plugins
	PluginFuel      int      // the most fuel of a call at a step; 0: as much as a manifest may ask for
	PluginSlow      bool     // plugins with large views may be interpreted
	InlinePlugins   bool     // requests may bring the code of plugins

	Log         bool
	LogText     bool          // prompts and completions are kept, not only figures
	LogMedia    bool          // and the files of their media
	LogMaxAge   time.Duration // 0: no limit
	LogMaxBytes int64         // 0: no limit
}

// Speculation is where tokens guessed ahead come from: as asked for, and where nothing is
// asked for from the smaller model if there is one, else from the text itself.
func (s *Settings) Speculation() Speculation {
	switch {
	case s.Speculate != "auto":
		return Speculation(s.Speculate)
	case s.DraftModel != "":
		return SpeculateDraft
	}
	return SpeculateLookup
}

// Setting describes one setting for flags, help and documents.
type Setting struct {
	Name    string `json:"name"`           // what LoadSettings and Resolved call it
	Flag    string `json:"flag,omitempty"` // without dashes; empty: there is no flag
	Env     string `json:"env"`
	Key     string `json:"key,omitempty"` // in the TOML file; empty: not allowed there
	Doc     string `json:"doc"`
	Default string `json:"default"` // as text; empty: none
	IsBool  bool   `json:"is_bool,omitempty"`
	IsList  bool   `json:"is_list,omitempty"` // may be given several times
}

// Resolved is the value of a setting and where it comes from.
type Resolved struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // as text; a secret is shown as "(set)"
	Origin string `json:"origin"` // "flag --x", "environment GANGLION_X", "file PATH" or "default"
}

// SettingTable returns all settings in the order of the documents. The caller owns
// the slice.
func SettingTable() []Setting {
	rows := settingRows()
	table := make([]Setting, len(rows))
	for i, r := range rows {
		table[i] = r.Setting
	}
	return table
}

// LoadSettings resolves every setting: a flag wins over the environment, that over the
// TOML file, that over the default. flags holds the values given on the command line
// by setting name; a list setting takes all, the others the last. No file is read
// where file is empty or does not exist. An empty environment variable counts as
// absent.
//
// The first error names the flag, variable or line at fault. The result is valid.
func LoadSettings(file string, getenv func(string) string, flags map[string][]string) (*Settings, []Resolved, error) {
	l := &settingsLoader{settings: &Settings{}, origins: map[string]settingSource{}}
	steps := []func() error{
		l.defaults,
		func() error { return l.file(file) },
		func() error { return l.environment(getenv) },
		func() error { return l.flags(flags) },
		l.keyFile,
		l.settings.Validate,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	return l.settings, l.resolved(), nil
}
