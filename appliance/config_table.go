package appliance

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"ganglion/gpu/engine"
)

// settingRow is a setting with the way to its field.
type settingRow struct {
	Setting
	kind      settingKind
	secret    bool
	separator string // of list values in one variable: the system's for paths, which may hold commas
	set       func(*Settings, []string) error
	get       func(*Settings) string
}

// settingKind says which TOML types a setting takes.
type settingKind int

const (
	kindText settingKind = iota
	kindBool
	kindInt
	kindFloat
	kindBytes // an integer, or text with a unit
	kindList
)

// settingRows is the one table of all settings; names, documents, parsing and display
// follow from it.
func settingRows() []settingRow {
	return []settingRow{
		textRow("model", "", "model file (.gguf) to load; without it the first one found", func(s *Settings) *string { return &s.Model }),
		textRow("mmproj", "", "encoder file (.gguf) with which the model sees or hears; without it the file mmproj*.gguf beside the model, none: no encoder", func(s *Settings) *string { return &s.MMProj }),
		intRow("image-tokens", strconv.Itoa(DefaultImageTokens), "tokens that a picture takes at most, where the encoder leaves a choice", func(s *Settings) *int { return &s.ImageTokens }),
		loraRow(),
		listRow("model-dir", string(os.PathListSeparator), "folder to look for models in, besides the usual ones", func(s *Settings) *[]string { return &s.ModelDirs }),
		textRow("media-dir", "", "folder with pictures, sounds and films that requests may name by path; without it they name none and bring the bytes", func(s *Settings) *string { return &s.MediaDir }),
		sizeRow("body-bytes", "64MiB", "size of a request, at most; base64 makes four bytes of three", func(s *Settings) *int64 { return &s.BodyBytes }),
		sizeRow("media-bytes", "32MiB", "size of one picture, sound or film, at most; those of a request may have twice as much together", func(s *Settings) *int64 { return &s.MediaBytes }),
		intRow("image-pixels", "40000000", "pixels of one picture, at most", func(s *Settings) *int { return &s.ImagePixels }),
		intRow("media-seconds", "600", "seconds that a sound or a film lasts, at most", func(s *Settings) *int { return &s.MediaSeconds }),
		intRow("video-frames", "64", "frames of one film that the model sees, at most; how many it does see is for the model and the request to say", func(s *Settings) *int { return &s.VideoFrames }),
		textRow("data", "", "folder for models and the log; without it the system's usual place", func(s *Settings) *string { return &s.Data }),
		textRow("listen", "127.0.0.1:8080", "address to serve at, HOST:PORT", func(s *Settings) *string { return &s.Listen }),
		keyRow(),
		textRow("key-file", "", "file with the API key, readable by its owner alone", func(s *Settings) *string { return &s.KeyFile }),
		listRow("allow-host", ",", "host name this server answers to, besides the loopback ones", func(s *Settings) *[]string { return &s.AllowedHosts }),
		listRow("allow-origin", ",", "origin of a web site whose pages may call the API", func(s *Settings) *[]string { return &s.AllowedOrigins }),
		textRow("backend", "auto", "what to compute on: auto (the fastest device that passed every test) or the name of a backend", func(s *Settings) *string { return &s.Backend }),
		textRow("device", "", "GPU to compute on, by a part of its name or its ID, see `ganglion doctor`; software renderers are used only when they are named here or by the backend", func(s *Settings) *string { return &s.Device }),
		sizeRow("device-memory", "0", "memory that a model may take of a GPU, such as 6GiB; layers that do not fit run on the processor; 0: most of what a discrete GPU has", func(s *Settings) *int64 { return &s.DeviceMemory }),
		textRow("prompt-backend", "auto", "what to read prompts on: auto (another device than that of tokens where it was measured to be faster by more than it costs, and neither is named), same (never another), or the name of a backend, which then has a copy of the model too", func(s *Settings) *string { return &s.PromptBackend }),
		textRow("prompt-device", "", "GPU to read prompts on, as --device", func(s *Settings) *string { return &s.PromptDevice }),
		textRow("gpu-variants", "auto", "kernels that make use of what a GPU can beyond the base set, in fast mode: auto (those that gave the right bits and were measured to be faster), all (those that gave the right bits), or none, which does not try them either", func(s *Settings) *string { return &s.GPUVariants }),
		textRow("numerics", "fast", "fast, or exact for results equal to the bit on every machine", func(s *Settings) *string { return &s.Numerics }),
		textRow("kv", "f16", "type of the cached keys and values: f16, f32 or q8_0", func(s *Settings) *string { return &s.KV }),
		intRow("threads", strconv.Itoa(runtime.NumCPU()), "threads to compute with", func(s *Settings) *int { return &s.Threads }),
		intRow("context", "0", "tokens of prompt and completion together; 0: as trained, at most 4096", func(s *Settings) *int { return &s.Context }),
		intRow("slots", "4", "requests answered at the same time", func(s *Settings) *int { return &s.Slots }),
		intRow("queue", strconv.Itoa(DefaultQueueMax), "requests that may wait", func(s *Settings) *int { return &s.Queue }),
		intRow("cache-tokens", strconv.Itoa(engine.DefaultCacheTokens), "tokens of finished requests to keep for reuse even while every slot is full; 0: none", func(s *Settings) *int { return &s.CacheTokens }),
		sizeRow("snapshot-bytes", "0", "memory for snapshots of recurrent state, such as 1GiB, from which prompts go on; 0: 32 of them, at most 256MiB", func(s *Settings) *int64 { return &s.SnapshotBytes }),
		textRow("speculate", "auto", "guess tokens ahead and check them in one batch, which changes no answer: off, lookup (from the text itself), draft (with the draft model), or auto (draft if there is one, else lookup)", func(s *Settings) *string { return &s.Speculate }),
		textRow("draft-model", "", "smaller model file (.gguf) that guesses tokens ahead; its vocabulary must be the model's", func(s *Settings) *string { return &s.DraftModel }),
		intRow("draft-max", strconv.Itoa(DefaultDraftMax), "tokens to guess at once, at most", func(s *Settings) *int { return &s.DraftMax }),
		intRow("max-tokens", strconv.Itoa(DefaultMaxTokens), "tokens to generate for a request that names no limit", func(s *Settings) *int { return &s.DefaultMaxTokens }),
		boolRow("parse-special", "true", "read the text of control tokens in prompts as these tokens", func(s *Settings) *bool { return &s.ParseSpecial }),
		floatRow("temperature", "temperature for requests that name none", func(s *Settings) **float64 { return &s.Temperature }),
		floatRow("top-p", "top_p for requests that name none", func(s *Settings) **float64 { return &s.TopP }),
		optionalIntRow("top-k", "top_k for requests that name none; 0: off", func(s *Settings) **int64 { return &s.TopK }),
		floatRow("min-p", "min_p for requests that name none; 0: off", func(s *Settings) **float64 { return &s.MinP }),
		textRow("plugin-dir", "", "folder of plugins (.wasm, .js), watched for changes; without it the folder plugins beside the models", func(s *Settings) *string { return &s.PluginDir }),
		textRow("plugins", "", "plugins of requests that name none, such as \"xtc;probability=0.5, dry\"", func(s *Settings) *string { return &s.Plugins }),
		listRow("model-plugins", "|", "plugins of requests for one model that name none, MODEL=PLUGINS, in place of --plugins", func(s *Settings) *[]string { return &s.ModelPlugins }),
		textRow("required-plugins", "", "plugins that run in every request, whatever it names", func(s *Settings) *string { return &s.RequiredPlugins }),
		textRow("shadow-plugins", "", "plugins that only watch every request: the log says how many tokens they would have chosen otherwise", func(s *Settings) *string { return &s.ShadowPlugins }),
		textRow("plugin-signing", "unsigned-ok", "which plugins may run: unsigned-ok (a signature that is there must be good), warn (the same, with a warning for those without) or require (only those signed with a known key)", func(s *Settings) *string { return &s.PluginSigning }),
		boolRow("plugin-upload", "false", "take plugins from the page and from PUT /v1/plugins/files into the folder of plugins; whoever may manage the server may then change what its requests run", func(s *Settings) *bool { return &s.PluginUpload }),
		intRow("plugin-fuel", "0", "instructions that a plugin may spend in one call at a step, at most, whatever its manifest asks for; 0: 64000000", func(s *Settings) *int { return &s.PluginFuel }),
		boolRow("plugin-slow", "false", "let plugins that see or mask the whole vocabulary run where plugins are interpreted, at some milliseconds a token", func(s *Settings) *bool { return &s.PluginSlow }),
		boolRow("inline-plugins", "false", "take the code of plugins with requests (member code of the field plugins): whoever has the key, which it needs, may then run metered, isolated code without capabilities", func(s *Settings) *bool { return &s.InlinePlugins }),
		boolRow("log", "true", "keep a log of requests", func(s *Settings) *bool { return &s.Log }),
		boolRow("log-text", "true", "keep prompts and completions in the log, not only figures", func(s *Settings) *bool { return &s.LogText }),
		boolRow("log-media", "false", "keep the pictures and sounds of requests in the log, where it keeps text", func(s *Settings) *bool { return &s.LogMedia }),
		durationRow("log-max-age", "720h", "delete log entries older than this, such as 12h or 30d; 0: never", func(s *Settings) *time.Duration { return &s.LogMaxAge }),
		sizeRow("log-max-bytes", "1GiB", "delete the oldest log entries beyond this size, such as 500MB; 0: never", func(s *Settings) *int64 { return &s.LogMaxBytes }),
	}
}

// newRow names a setting everywhere after its flag.
func newRow(flag, def, doc string, k settingKind) settingRow {
	key := strings.ReplaceAll(flag, "-", "_")
	return settingRow{
		Setting: Setting{Name: flag, Flag: flag, Env: "GANGLION_" + strings.ToUpper(key), Key: key, Doc: doc, Default: def, IsBool: k == kindBool, IsList: k == kindList},
		kind:    k,
	}
}

// keyRow is the API key. It has no flag, which other users of the machine could see in
// the list of processes, and no place in the TOML file, which is meant to be shown.
func keyRow() settingRow {
	r := textRow("key", "", "API key that clients must send; better kept in a file, see key_file", func(s *Settings) *string { return &s.Key })
	r.Flag, r.Key, r.secret = "", "", true
	return r
}

// lastOf wraps a parser of one value; of several the last counts.
func lastOf[T any](field func(*Settings) *T, parse func(string) (T, error)) func(*Settings, []string) error {
	return func(s *Settings, values []string) error {
		v, err := parse(values[len(values)-1])
		if err == nil {
			*field(s) = v
		}
		return err
	}
}

func textRow(flag, def, doc string, field func(*Settings) *string) settingRow {
	r := newRow(flag, def, doc, kindText)
	r.set = lastOf(field, func(v string) (string, error) { return v, nil })
	r.get = func(s *Settings) string { return *field(s) }
	return r
}

func boolRow(flag, def, doc string, field func(*Settings) *bool) settingRow {
	r := newRow(flag, def, doc, kindBool)
	r.set = lastOf(field, parseBool)
	r.get = func(s *Settings) string { return strconv.FormatBool(*field(s)) }
	return r
}

func intRow(flag, def, doc string, field func(*Settings) *int) settingRow {
	r := newRow(flag, def, doc, kindInt)
	r.set = lastOf(field, func(v string) (int, error) {
		n, err := parseInt(v)
		return int(n), err
	})
	r.get = func(s *Settings) string { return strconv.Itoa(*field(s)) }
	return r
}

func optionalIntRow(flag, doc string, field func(*Settings) **int64) settingRow {
	r := newRow(flag, "", doc, kindInt)
	r.set = lastOf(field, func(v string) (*int64, error) {
		n, err := parseInt(v)
		return &n, err
	})
	r.get = func(s *Settings) string {
		if p := *field(s); p != nil {
			return strconv.FormatInt(*p, 10)
		}
		return ""
	}
	return r
}

func floatRow(flag, doc string, field func(*Settings) **float64) settingRow {
	r := newRow(flag, "", doc, kindFloat)
	r.set = lastOf(field, func(v string) (*float64, error) {
		x, err := parseFloat(v)
		return &x, err
	})
	r.get = func(s *Settings) string {
		if p := *field(s); p != nil {
			return strconv.FormatFloat(*p, 'g', -1, 64)
		}
		return ""
	}
	return r
}

func durationRow(flag, def, doc string, field func(*Settings) *time.Duration) settingRow {
	r := newRow(flag, def, doc, kindText)
	r.set = lastOf(field, ParseDuration)
	r.get = func(s *Settings) string { return formatDuration(*field(s)) }
	return r
}

func sizeRow(flag, def, doc string, field func(*Settings) *int64) settingRow {
	r := newRow(flag, def, doc, kindBytes)
	r.set = lastOf(field, ParseBytes)
	r.get = func(s *Settings) string { return formatBytes(*field(s)) }
	return r
}

// listRow is a setting of several values; separator parts them in one environment
// variable and when they are shown.
func listRow(flag, separator, doc string, field func(*Settings) *[]string) settingRow {
	r := newRow(flag, "", doc+fmt.Sprintf(" (may be repeated; parted by %q in the variable)", separator), kindList)
	r.separator = separator
	r.set = func(s *Settings, values []string) error {
		*field(s) = values
		return nil
	}
	r.get = func(s *Settings) string { return strings.Join(*field(s), separator) }
	return r
}
