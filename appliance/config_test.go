package appliance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// loadFrom resolves settings from the text of a configuration file.
func loadFrom(t *testing.T, toml string, env map[string]string, flags map[string][]string) (*Settings, map[string]Resolved, error) {
	t.Helper()
	file := ""
	if toml != "" {
		file = writeFile(t, "config.toml", toml, 0o644)
	}
	s, list, err := LoadSettings(file, getenvOf(env), flags)
	resolved := map[string]Resolved{}
	for _, r := range list {
		resolved[r.Name] = r
	}
	return s, resolved, err
}

func writeFile(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return path
}

func TestSettingsDefaults(t *testing.T) {
	got, resolved, err := loadFrom(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Settings{
		Listen: "127.0.0.1:8080", Backend: "auto", PromptBackend: "auto", GPUVariants: "auto", Numerics: "fast", KV: "f16",
		Threads: runtime.NumCPU(), Slots: 4, Queue: 64, DefaultMaxTokens: 512, ParseSpecial: true,
		ImageTokens: 512, BodyBytes: 64 << 20, MediaBytes: 32 << 20, ImagePixels: 40_000_000, MediaSeconds: 600, VideoFrames: 64, CacheTokens: 1024, Speculate: "auto", DraftMax: 16, PluginSigning: "unsigned-ok",
		Log: true, LogText: true, LogMaxAge: 720 * time.Hour, LogMaxBytes: 1 << 30,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, s := range SettingTable() {
		if r := resolved[s.Name]; r.Value != s.Default || r.Origin != "default" {
			t.Errorf("%s: resolved %+v, want value %q from default", s.Name, r, s.Default)
		}
	}
}

// TestSettingTable: names follow one rule, and every field has a row.
func TestSettingTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range SettingTable() {
		if seen[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		seen[s.Name] = true
		if want := "GANGLION_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")); s.Env != want {
			t.Errorf("%s: variable %s, want %s", s.Name, s.Env, want)
		}
		if s.Name != "key" && (s.Flag != s.Name || s.Key != strings.ReplaceAll(s.Name, "-", "_")) {
			t.Errorf("%s: flag %q, key %q", s.Name, s.Flag, s.Key)
		}
		if s.Doc == "" || !regexp.MustCompile(`^[a-z-]+$`).MatchString(s.Name) {
			t.Errorf("%+v", s)
		}
	}
	if got, want := len(seen), reflect.TypeFor[Settings]().NumField(); got != want {
		t.Errorf("%d rows, %d fields", got, want)
	}
}

// oneOfEach has a value other than the default for every setting that a file can hold.
const oneOfEach = `
model = "m.gguf"
mmproj = "mmproj-m.gguf"
image_tokens = 100
lora = ["l.gguf:0.5"]
model_dir = ["/a", "/b"]
media_dir = "/m"
body_bytes = "1MiB"
media_bytes = "500KB"
image_pixels = 1000000
media_seconds = 30
video_frames = 8
data = "/d"
listen = "127.0.0.1:1"
allow_host = "box.local"
allow_origin = ["https://a.example"]
backend = "cpu"
device = "Mali"
device_memory = "6GiB"
prompt_backend = "vulkan"
prompt_device = "Adreno"
gpu_variants = "none"
numerics = "exact"
kv = "f32"
threads = 3
context = 8192
slots = 2
queue = 5
cache_tokens = 0
snapshot_bytes = "1GiB"
speculate = "off"
draft_model = "d.gguf"
draft_max = 3
max_tokens = 7
parse_special = false
temperature = 1
top_p = 0.5
top_k = 40
min_p = 0.05
plugin_dir = "/p"
plugins = "xtc;probability=0.5, dry"
model_plugins = ["gemma=dry", "m=xtc"]
required_plugins = "pii"
shadow_plugins = "dry"
plugin_signing = "require"
plugin_upload = true
plugin_fuel = 5
plugin_slow = true
inline_plugins = true
log = false
log_text = false
log_media = true
log_max_age = "30d"
log_max_bytes = "500MB"
`

// TestSpeculation: without a word of its own, a draft model is used where there is one.
func TestSpeculation(t *testing.T) {
	for _, c := range []struct {
		word, model string
		want        Speculation
	}{
		{"auto", "", SpeculateLookup}, {"auto", "d.gguf", SpeculateDraft}, {"off", "d.gguf", SpeculateOff},
		{"lookup", "d.gguf", SpeculateLookup}, {"draft", "d.gguf", SpeculateDraft},
	} {
		s := &Settings{Speculate: c.word, DraftModel: c.model}
		if got := s.Speculation(); got != c.want {
			t.Errorf("%s with model %q: %s, want %s", c.word, c.model, got, c.want)
		}
	}
}

func TestSettingsFromFile(t *testing.T) {
	got, resolved, err := loadFrom(t, oneOfEach, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	temperature, topP, minP, topK := 1.0, 0.5, 0.05, int64(40)
	want := &Settings{
		Model: "m.gguf", MMProj: "mmproj-m.gguf", ImageTokens: 100, LoRA: []LoRA{{"l.gguf", 0.5}}, ModelDirs: []string{"/a", "/b"}, MediaDir: "/m", BodyBytes: 1 << 20, MediaBytes: 500e3, ImagePixels: 1000000, MediaSeconds: 30, VideoFrames: 8, Data: "/d", Listen: "127.0.0.1:1",
		AllowedHosts: []string{"box.local"}, AllowedOrigins: []string{"https://a.example"},
		Backend: "cpu", Device: "Mali", DeviceMemory: 6 << 30, PromptBackend: "vulkan", PromptDevice: "Adreno", GPUVariants: "none", Numerics: "exact", KV: "f32", Threads: 3, Context: 8192, Slots: 2, Queue: 5, DefaultMaxTokens: 7,
		CacheTokens: 0, SnapshotBytes: 1 << 30, Speculate: "off", DraftModel: "d.gguf", DraftMax: 3,
		Temperature: &temperature, TopP: &topP, MinP: &minP, TopK: &topK,
		PluginDir: "/p", Plugins: "xtc;probability=0.5, dry", ModelPlugins: []string{"gemma=dry", "m=xtc"}, RequiredPlugins: "pii", ShadowPlugins: "dry", PluginSigning: "require", PluginUpload: true, PluginFuel: 5, PluginSlow: true, InlinePlugins: true,
		LogMedia: true, LogMaxAge: 30 * 24 * time.Hour, LogMaxBytes: 500e6,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for name, r := range resolved {
		if isFile := strings.HasPrefix(r.Origin, "file "); isFile == (name == "key" || name == "key-file") {
			t.Errorf("%s comes from %q", name, r.Origin)
		}
	}
}

func TestSettingsPrecedence(t *testing.T) {
	env := map[string]string{"GANGLION_SLOTS": "6", "GANGLION_QUEUE": "7", "GANGLION_ALLOW_HOST": "a, b,,c", "GANGLION_LISTEN": ""}
	flags := map[string][]string{"slots": {"8", "9"}, "allow-origin": {"https://a", "https://b"}}
	s, resolved, err := loadFrom(t, "slots = 1\nqueue = 2\ncontext = 3\nallow_origin = [\"https://c\"]", env, flags)
	if err != nil {
		t.Fatal(err)
	}
	if s.Slots != 9 || s.Queue != 7 || s.Context != 3 || s.Listen != "127.0.0.1:8080" {
		t.Errorf("slots %d, queue %d, context %d, listen %s", s.Slots, s.Queue, s.Context, s.Listen)
	}
	for _, c := range []struct{ name, value, origin string }{
		{"slots", "9", "flag --slots"},
		{"queue", "7", "environment GANGLION_QUEUE"},
		{"listen", "127.0.0.1:8080", "default"},
		{"allow-host", "a,b,c", "environment GANGLION_ALLOW_HOST"},
		{"allow-origin", "https://a,https://b", "flag --allow-origin"},
	} {
		if got, want := resolved[c.name], (Resolved{c.name, c.value, c.origin}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := resolved["context"].Origin; !strings.HasPrefix(got, "file ") {
		t.Errorf("context comes from %q", got)
	}
}

func TestSettingsErrors(t *testing.T) {
	for _, c := range []struct {
		name, toml string
		env        map[string]string
		flags      map[string][]string
		want       []string
	}{
		{name: "unknown key", toml: "slots = 1\n\n# x\nslotz = 2\nthread = 1", want: []string{`config.toml:4: unknown key "slotz"`}},
		{name: "unknown table", toml: "slots = 1\n[server]\nlisten = 'x'", want: []string{`config.toml:2: unknown key "server"`}},
		{name: "dotted key", toml: "log.text = true", want: []string{"config.toml:1: log: must be true or false"}},
		{name: "quoted unknown key", toml: "slots = 1\n\"a b\" = 1", want: []string{`config.toml:2: unknown key "a b"`}},
		{name: "key in the file", toml: "key = 'secret'", want: []string{"config.toml:1", "key_file"}},
		{name: "syntax", toml: "slots = 1\nqueue = = 2", want: []string{"config.toml:2: "}},
		{name: "wrong type", toml: "\nslots = '1'", want: []string{"config.toml:2: slots: must be an integer"}},
		{name: "wrong item", toml: "allow_host = [1]", want: []string{"config.toml:1: allow_host: must be a list of strings"}},
		{name: "range in file", toml: "slots = 4294967296", want: []string{"config.toml:1: slots: 4294967296 is out of range"}},
		{name: "date", toml: "data = 2020-01-01", want: []string{"data: must be a string"}},
		{name: "infinity", toml: "temperature = inf", want: []string{"temperature: ", "not a number"}},
		{name: "env", env: map[string]string{"GANGLION_LOG": "maybe"}, want: []string{"environment GANGLION_LOG: \"maybe\""}},
		{name: "flag", flags: map[string][]string{"log-max-age": {"-1h"}}, want: []string{"flag --log-max-age: \"-1h\""}},
		{name: "unknown flag", flags: map[string][]string{"nope": {"1"}}, want: []string{`"nope"`}},
		{name: "key by flag", flags: map[string][]string{"key": {"s"}}, want: []string{`"key"`}},
		{name: "listen", flags: map[string][]string{"listen": {"8080"}}, want: []string{`--listen "8080" is not HOST:PORT`}},
		{name: "port", flags: map[string][]string{"listen": {":65536"}}, want: []string{"--listen", "port"}},
		{name: "numerics", flags: map[string][]string{"numerics": {"slow"}}, want: []string{`--numerics "slow" is neither fast nor exact`}},
		{name: "plugins", flags: map[string][]string{"plugins": {"xtc;probability"}}, want: []string{`--plugins: "probability" is not key=value`}},
		{name: "plugins of a model", flags: map[string][]string{"model-plugins": {"xtc"}}, want: []string{`--model-plugins "xtc" is not MODEL=PLUGINS`}},
		{name: "fuel of plugins", flags: map[string][]string{"plugin-fuel": {"64000001"}}, want: []string{"--plugin-fuel 64000001"}},
		{name: "plugin signing", flags: map[string][]string{"plugin-signing": {"no"}}, want: []string{`--plugin-signing "no"`}},
		{name: "speculate", flags: map[string][]string{"speculate": {"yes"}}, want: []string{`--speculate "yes" is neither auto, off, lookup nor draft`}},
		{name: "speculate without a model", flags: map[string][]string{"speculate": {"draft"}}, want: []string{"--speculate draft needs --draft-model FILE"}},
		{name: "draft-max", flags: map[string][]string{"draft-max": {"64"}}, want: []string{"--draft-max 64 is not in [1, 63]"}},
		{name: "kv", flags: map[string][]string{"kv": {"q4"}}, want: []string{"--kv"}},
		{name: "backend", flags: map[string][]string{"backend": {""}}, want: []string{"--backend is empty"}},
		{name: "threads", flags: map[string][]string{"threads": {"0"}}, want: []string{"--threads 0"}},
		{name: "context", flags: map[string][]string{"context": {"-1"}}, want: []string{"--context -1"}},
		{name: "slots", flags: map[string][]string{"slots": {"1025"}}, want: []string{"--slots 1025"}},
		{name: "queue", flags: map[string][]string{"queue": {"0"}}, want: []string{"--queue 0"}},
		{name: "max-tokens", flags: map[string][]string{"max-tokens": {"0"}}, want: []string{"--max-tokens 0"}},
		{name: "temperature", flags: map[string][]string{"temperature": {"-0.1"}}, want: []string{"--temperature -0.1 is not in [0, 100]"}},
		{name: "top-p", flags: map[string][]string{"top-p": {"1.1"}}, want: []string{"--top-p 1.1"}},
		{name: "min-p", flags: map[string][]string{"min-p": {"2"}}, want: []string{"--min-p 2"}},
		{name: "top-k", flags: map[string][]string{"top-k": {"-1"}}, want: []string{"--top-k -1"}},
		{name: "empty host", flags: map[string][]string{"allow-host": {""}}, want: []string{"--allow-host"}},
		{name: "key with a space", env: map[string]string{"GANGLION_KEY": "se cret"}, want: []string{"GANGLION_KEY"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := loadFrom(t, c.toml, c.env, c.flags)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %q, want it to contain %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "cret") {
				t.Errorf("the key is in the message: %v", err)
			}
		})
	}
}

func TestSettingsMissingFile(t *testing.T) {
	if _, _, err := LoadSettings(filepath.Join(t.TempDir(), "none.toml"), getenvOf(nil), nil); err != nil {
		t.Errorf("a missing file: %v", err)
	}
	if _, _, err := LoadSettings(t.TempDir(), getenvOf(nil), nil); err == nil {
		t.Error("a folder was read as configuration")
	}
}

func TestSettingsKey(t *testing.T) {
	file := writeFile(t, "key", " from-file\n", 0o600)
	for _, c := range []struct {
		name, toml  string
		env         map[string]string
		flags       map[string][]string
		key, origin string
	}{
		{"env", "", map[string]string{"GANGLION_KEY": "k"}, nil, "k", "environment GANGLION_KEY"},
		{"file by flag", "", nil, map[string][]string{"key-file": {file}}, "from-file", "file " + file},
		{"flag wins over env", "", map[string]string{"GANGLION_KEY": "k"}, map[string][]string{"key-file": {file}}, "from-file", "file " + file},
		{"env wins over file by env", "", map[string]string{"GANGLION_KEY": "k", "GANGLION_KEY_FILE": file}, nil, "k", "environment GANGLION_KEY"},
		{"env wins over file by TOML", "key_file = '" + file + "'", map[string]string{"GANGLION_KEY": "k"}, nil, "k", "environment GANGLION_KEY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, resolved, err := loadFrom(t, c.toml, c.env, c.flags)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := resolved["key"], (Resolved{"key", "(set)", c.origin}); s.Key != c.key || got != want {
				t.Errorf("got %q, %+v; want %q, %+v", s.Key, got, c.key, want)
			}
			if b, err := json.Marshal(resolved); err != nil || strings.Contains(string(b), c.key+`"`) && c.key != "k" {
				t.Errorf("the key is shown: %s (%v)", b, err)
			}
		})
	}
}

func TestSettingsKeyFileRefused(t *testing.T) {
	for _, c := range []struct{ name, path, want string }{
		{"group can read", writeFile(t, "key", "k", 0o640), "0640"},
		{"others can read", writeFile(t, "key", "k", 0o604), "0604"},
		{"empty", writeFile(t, "key", " \n", 0o600), "is empty"},
		{"missing", filepath.Join(t.TempDir(), "none"), "no such file"},
		{"folder", t.TempDir(), "--key-file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := LoadSettings("", getenvOf(nil), map[string][]string{"key-file": {c.path}})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--key-file") {
				t.Errorf("got %v, want %q and --key-file", err, c.want)
			}
		})
	}
}

func TestSettingValues(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{{"0", 0}, {"1", 1}, {"1GiB", 1 << 30}, {"2 KiB", 2048}, {"3kB", 3000}, {"5B", 5}, {"1TB", 1e12}} {
		got, err := ParseBytes(c.text)
		if err != nil || got != c.want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", c.text, got, err, c.want)
		}
		if again, err := ParseBytes(formatBytes(c.want)); err != nil || again != c.want {
			t.Errorf("formatBytes(%d) = %q reads as %d, %v", c.want, formatBytes(c.want), again, err)
		}
	}
	for _, bad := range []string{"", "GiB", "-1", "1.5GiB", "9999999TiB", "1 x"} {
		if n, err := ParseBytes(bad); err == nil {
			t.Errorf("ParseBytes(%q) = %d", bad, n)
		}
	}
	for _, c := range []struct {
		text, shown string
		want        time.Duration
	}{{"720h", "720h", 720 * time.Hour}, {"30d", "720h", 720 * time.Hour}, {"0", "0s", 0}, {"90m", "1h30m", 90 * time.Minute}, {"10m5s", "10m5s", 605 * time.Second}, {"100ms", "100ms", 100 * time.Millisecond}} {
		got, err := ParseDuration(c.text)
		if err != nil || got != c.want || formatDuration(got) != c.shown {
			t.Errorf("ParseDuration(%q) = %v (%s), %v; want %v (%s)", c.text, got, formatDuration(got), err, c.want, c.shown)
		}
	}
	for _, bad := range []string{"", "d", "-1d", "1", "1.5d", "999999999d"} {
		if d, err := ParseDuration(bad); err == nil {
			t.Errorf("ParseDuration(%q) = %v", bad, d)
		}
	}
}
