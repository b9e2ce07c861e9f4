package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ganglion/appliance"
	"ganglion/gpu"
	"ganglion/gpu/ops"
	"ganglion/storage"
)

// settings are the resolved settings of one command line and what follows from
// them. Verbs share one; load fills it before a verb runs.
type settings struct {
	e *env
	appliance.Settings
	resolved   []appliance.Resolved
	paths      appliance.Paths
	configFile string
	broken     error // of a file or an environment that a verb goes on without
	alone      bool  // a device that fails is an error: the verb measures it or writes down what it computes
}

// modelSettings are the flags of every verb that loads a model.
var modelSettings = []string{"model", "mmproj", "image-tokens", "model-dir", "data", "backend", "device", "device-memory", "prompt-backend", "prompt-device", "gpu-variants", "numerics", "kv", "threads", "context"}

// guessSettings are the flags of verbs that complete prompts with it.
var guessSettings = []string{"speculate", "draft-model", "draft-max"}

// modelFlags adds the flags of verbs that load a model.
func (s *settings) modelFlags(c *cobra.Command) {
	s.addFlags(c.Flags(), func(f string) bool { return slices.Contains(modelSettings, f) })
}

// guessFlags adds the flags of guessing ahead.
func (s *settings) guessFlags(c *cobra.Command) {
	s.addFlags(c.Flags(), func(f string) bool { return slices.Contains(guessSettings, f) })
}

// pluginSettings are the flags that say which plugins run.
var pluginSettings = []string{"plugin-dir", "plugins", "model-plugins", "required-plugins", "shadow-plugins", "plugin-signing"}

// pluginFlags adds the flags of plugins.
func (s *settings) pluginFlags(c *cobra.Command) {
	s.addFlags(c.Flags(), func(f string) bool { return slices.Contains(pluginSettings, f) })
}

// serveFlags adds a flag for every setting.
func (s *settings) serveFlags(c *cobra.Command) {
	s.addFlags(c.Flags(), func(string) bool { return true })
}

func (s *settings) addFlags(fs *pflag.FlagSet, wanted func(flag string) bool) {
	fs.SortFlags = false
	if fs.Lookup("config") == nil {
		fs.StringVar(&s.configFile, "config", "", "`FILE` of settings in TOML; without it the one that \"ganglion paths\" shows, if it is there")
	}
	for _, row := range appliance.SettingTable() {
		if row.Flag == "" || !wanted(row.Flag) || fs.Lookup(row.Flag) != nil {
			continue
		}
		doc := strings.ReplaceAll(row.Doc, "`", "") // pflag takes what stands in them for the placeholder
		f := fs.VarPF(&given{name: row.Name, kind: placeholder(row)}, row.Flag, "", doc)
		f.DefValue = row.Default
		if row.IsBool {
			f.NoOptDefVal = "true"
		}
	}
}

// placeholders stand for the value of a flag in the help; numbers are N.
var placeholders = map[string]string{
	"model": "FILE", "mmproj": "FILE", "lora": "FILE[:SCALE]", "model-dir": "DIR", "media-dir": "DIR", "data": "DIR", "listen": "HOST:PORT", "key-file": "FILE",
	"allow-host": "NAME", "allow-origin": "ORIGIN", "backend": strings.Join(gpu.Names(), "|"), "device": "NAME", "prompt-backend": "same|" + strings.Join(gpu.Names(), "|"), "prompt-device": "NAME", "gpu-variants": "auto|all|none", "numerics": "fast|exact", "kv": strings.Join(ops.KVTypes(), "|"),
	"plugin-dir": "DIR", "plugins": "LIST", "model-plugins": "MODEL=LIST", "required-plugins": "LIST", "shadow-plugins": "LIST", "plugin-signing": "unsigned-ok|warn|require",
	"speculate": "auto|off|lookup|draft", "draft-model": "FILE", "log-max-age": "TIME", "log-max-bytes": "SIZE", "snapshot-bytes": "SIZE", "device-memory": "SIZE", "body-bytes": "SIZE", "media-bytes": "SIZE",
}

func placeholder(row appliance.Setting) string {
	if row.IsBool {
		return "bool" // the help prints no placeholder then
	}
	if p := placeholders[row.Flag]; p != "" {
		return p
	}
	return "N"
}

// given is a flag's raw values; the appliance parses them.
type given struct {
	name, kind string
	values     []string
}

func (g *given) String() string     { return strings.Join(g.values, ",") }
func (g *given) Type() string       { return g.kind }
func (g *given) Set(v string) error { g.values = append(g.values, v); return nil }

// load resolves flags, environment and file into settings.
func (s *settings) load(c *cobra.Command) error {
	flags := map[string][]string{}
	c.Flags().Visit(func(f *pflag.Flag) {
		if g, ok := f.Value.(*given); ok {
			flags[g.name] = g.values
		}
	})
	uid := os.Getuid()
	dir := ""
	if s.e.executable != "" {
		dir = filepath.Dir(s.e.executable)
	}
	s.paths = appliance.FindPaths(runtime.GOOS, s.e.getenv, dir, uid)
	file := s.paths.ConfigFile()
	if s.configFile == "" {
		s.configFile = s.e.getenv("GANGLION_CONFIG")
	}
	var missing error
	if s.configFile != "" {
		file = s.configFile
		if _, err := os.Stat(file); err != nil {
			missing = fail(exitUsage, "", "the settings file: %v", err)
		}
	}
	s.configFile = file
	loaded, resolved, err := appliance.LoadSettings(file, s.e.getenv, flags)
	switch tolerant := c.Annotations[withoutSettings] != ""; {
	case missing != nil && !tolerant:
		return missing
	case missing != nil:
		s.broken = missing
	case err != nil && tolerant:
		s.broken = settingsFault(c, err)
		loaded, resolved, err = appliance.LoadSettings("", func(string) string { return "" }, flags)
	}
	if err != nil {
		return settingsFault(c, err)
	}
	s.Settings, s.resolved = *loaded, resolved
	if s.Data != "" {
		s.paths.Data, s.paths.State = s.Data, s.Data
	}
	return nil
}

// withoutSettings annotates a verb that helps to mend wrong settings: it runs without those
// of the file and the environment where they cannot be read, and says so.
const withoutSettings = "without settings"

func settingsFault(c *cobra.Command, err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "appliance: "), "settings: ")
	return fail(exitUsage, "`"+c.CommandPath()+" --help` lists the settings", "%s", text)
}

// given tells whether a setting was named by hand: by a flag, the environment or
// the file.
func (s *settings) given(name string) bool {
	return slices.ContainsFunc(s.resolved, func(r appliance.Resolved) bool { return r.Name == name && r.Origin != "default" })
}

func (s *settings) modelsDir() string { return filepath.Join(s.paths.Data, "models") }

func (s *settings) logPath() string { return filepath.Join(s.paths.State, "ganglion.db") }

// named finds the model that --model names, whatever it is.
func (s *settings) named(ctx context.Context) (appliance.Found, bool) {
	if s.Model == "" {
		return appliance.Found{}, false
	}
	found := appliance.Discover(ctx, appliance.DiscoverOptions{Flag: s.Model, GOOS: runtime.GOOS})
	if len(found) == 0 { // it is there in no form: let opening it say why
		return appliance.Found{Name: filepath.Base(s.Model), Path: s.Model, Source: "flag"}, true
	}
	return found[0], true
}

// discover lists the models of this machine in the order of preference.
func (s *settings) discover(ctx context.Context) []appliance.Found {
	wd, err := os.Getwd()
	if err != nil {
		wd = "" // a folder that is gone holds no models
	}
	return appliance.Discover(ctx, appliance.DiscoverOptions{
		Flag: s.Model, Executable: s.e.executable, DataDir: s.paths.Data, WorkDir: wd, Home: s.e.getenv("HOME"),
		Getenv: s.e.getenv, Extra: s.ModelDirs, GOOS: runtime.GOOS,
	})
}

// place is where a found model lies in its file: all of it, or the part behind the
// program of this executable.
func (s *settings) place(f appliance.Found) (offset, size int64, err error) {
	if f.Source != "embedded" {
		return 0, 0, nil
	}
	offset, size, ok, err := appliance.Embedded(f.Path)
	if err == nil && !ok {
		err = fmt.Errorf("%s holds no model", f.Path)
	}
	return offset, size, err
}

// logConfig is the request log that the settings describe.
func (s *settings) logConfig(logger *slog.Logger) storage.Config {
	return storage.Config{Path: s.logPath(), Logger: logger, NoText: !s.LogText, Media: s.LogMedia, MaxAge: s.LogMaxAge, MaxBytes: s.LogMaxBytes}
}

// openLog opens the request log that the settings describe.
func (s *settings) openLog(logger *slog.Logger) (*storage.Log, error) {
	return openLog(s.logConfig(logger))
}

// readLog opens the log to look at it. It has no limits of its own, so that a verb
// with other settings than the server's deletes no row.
func (s *settings) readLog(logger *slog.Logger) (*storage.Log, error) {
	c := s.logConfig(logger)
	if err := checkLog(c); err != nil {
		return nil, err
	}
	c.MaxAge, c.MaxBytes = 0, 0
	return openLog(c)
}

// checkLog makes settings of the log that cannot be obeyed a usage error.
func checkLog(c storage.Config) error {
	if err := c.Validate(); err != nil {
		return &failure{err: err, code: exitUsage, hint: "--log-max-bytes takes sizes from 1MiB, or 0 for no limit"}
	}
	return nil
}

func openLog(c storage.Config) (*storage.Log, error) {
	if err := checkLog(c); err != nil {
		return nil, err
	}
	l, err := storage.Open(c)
	if err != nil {
		return nil, &failure{err: err, code: exitFailure, hint: "--data names another folder, --log=false keeps no log"}
	}
	return l, nil
}

// service is the service that the settings describe.
func (s *settings) service(r appliance.Recorder, logger *slog.Logger) appliance.Config {
	return appliance.Config{
		Scan:     gpu.Scan(),
		Recorder: r, Logger: logger, QueueMax: s.Queue, DefaultMaxTokens: s.DefaultMaxTokens, PlainSpecial: !s.ParseSpecial,
		Speculate: s.Speculation(), DraftMax: s.DraftMax,
		Temperature: s.Temperature, TopP: s.TopP, MinP: s.MinP, TopK: s.TopK,
		LoRA: s.LoRA,
	}
}
