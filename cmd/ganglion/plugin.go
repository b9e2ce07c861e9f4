package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/plugins/host"
	"ganglion/plugins/js"
)

func newPlugin(e *env, s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Write, test, sign and run plugins: samplers and filters in WebAssembly",
		Long:  "Plugins take part in choosing the tokens of a text. `new` begins one, `build` makes a\n.wasm of it, `test` and `bench` run it without a model, `run` and `try` with one.\n`detect` looks for the watermark of plugin green-list in a text.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fail(exitUsage, "`ganglion plugin --help` lists the verbs", "unknown verb %q of plugin", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, v := range []*cobra.Command{
		newPluginNew(e), newPluginBuild(e), newPluginCheck(e, s), newPluginBench(e, s), newPluginSign(e, s), newPluginTry(e, s), newPluginRun(e, s), newPluginDetect(e, s), newPluginList(e, s),
	} {
		v.PreRunE = func(c *cobra.Command, _ []string) error { return s.load(c) }
		v.DisableFlagsInUseLine = true
		c.AddCommand(v)
	}
	return c
}

// oneFile wants the name of one plugin file.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fail(exitUsage, "", "%s takes one file, got %d arguments", c.Name(), len(args))
	}
	return nil
}

// readPlugin reads a plugin's file; a script becomes a module.
func readPlugin(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(exitUsage, "`ganglion plugin build` makes one", "there is no file %s", path)
	case err != nil:
		return nil, fail(exitUsage, "", "%v", err)
	case info.IsDir():
		return nil, fail(exitUsage, "`ganglion plugin build` makes a file of a folder", "%s is a folder", path)
	case info.Size() > host.MaxFileBytes:
		return nil, fail(exitUsage, "", "%s has %d bytes, a plugin has at most %d", path, info.Size(), host.MaxFileBytes)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fail(exitUsage, "", "%v", err)
	}
	if filepath.Ext(path) == ".js" {
		if b, err = js.Module(b); err != nil {
			return nil, fail(exitUsage, "", "%s: %v", path, err)
		}
	}
	return b, nil
}

// pluginKeysDir holds the public keys that are trusted to sign plugins.
func (s *settings) pluginKeysDir() string { return filepath.Join(s.pluginDir(), "keys") }

// pluginHost is how plugins run here: compiled in a child process into a cache of our own.
func (s *settings) pluginHost(logger *slog.Logger) host.Options {
	o := host.Options{Log: logger, StepFuel: int64(s.PluginFuel), AllowSlow: s.PluginSlow}
	if s.e.executable != "" {
		o.Cache = filepath.Join(s.paths.Cache, "plugins")
		o.Compile = func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, s.e.executable, append([]string{"internal", "plugin-compile", "--"}, args...)...)
			cmd.Args[0] = "ganglion"
			cmd.Env = compilerEnv(os.Environ())
			return cmd
		}
	}
	return o
}

// compilerEnv is what a process that compiles needs of an environment: keys of services
// and the like are none of its business.
func compilerEnv(all []string) []string {
	out := []string{}
	for _, e := range all {
		switch name, _, _ := strings.Cut(strings.ToUpper(e), "="); name {
		case "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "GOCOVERDIR", "GOTRACEBACK":
			out = append(out, e)
		}
	}
	return out
}

// openPlugin loads one plugin into a runtime of its own.
func (s *settings) openPlugin(ctx context.Context, file []byte, o host.Options) (p *host.Plugin, end func(), err error) {
	r, err := host.New(o)
	if err != nil {
		return nil, nil, err
	}
	if p, err = r.Load(ctx, file); err != nil {
		return nil, nil, errors.Join(fail(exitUsage, "`ganglion plugin test` says more", "%v", err), r.Close())
	}
	return p, func() {
		p.Close()
		_ = r.Close() // nothing is left in it
	}, nil
}

// identity names a plugin for people.
func identity(name, version, hash string) string {
	return fmt.Sprintf("%s@%s (%.12s)", name, version, hash)
}
