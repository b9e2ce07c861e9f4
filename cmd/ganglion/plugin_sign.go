package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ganglion/plugins/host"
	"ganglion/plugins/sign"
)

func newPluginSign(e *env, s *settings) *cobra.Command {
	var key, out, newKey string
	var verify bool
	c := &cobra.Command{
		Use:   "sign [flags] [FILE]",
		Short: "Sign a plugin, make a key for that, or check a signature",
		Long:  "Signs a plugin with an Ed25519 key. --new-key makes one: the private half stays with\nyou, the public half (.pub) goes into the folder of keys of those who shall trust it.",
		Example: "  ganglion plugin sign --new-key me.key\n" +
			"  ganglion plugin sign --key me.key my-sampler.wasm\n" +
			"  ganglion plugin sign --verify my-sampler.wasm",
		Args: func(c *cobra.Command, args []string) error {
			if newKey != "" {
				return noArgs("")(c, args)
			}
			return oneFile(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case newKey != "":
				return makeKey(e, s, newKey)
			case verify:
				return verifyPlugin(e, s, args[0])
			case key == "":
				return fail(exitUsage, "`ganglion plugin sign --new-key FILE` makes one", "--key is needed")
			}
			if out == "" {
				out = args[0]
			}
			return signPlugin(e, key, args[0], out)
		},
	}
	c.Flags().StringVar(&key, "key", "", "private key `FILE` to sign with")
	c.Flags().StringVarP(&out, "out", "o", "", "`FILE` to write (default: in place)")
	c.Flags().StringVar(&newKey, "new-key", "", "make a key: `FILE` and FILE.pub")
	c.Flags().BoolVar(&verify, "verify", false, "check the signature against the keys that are trusted here")
	return c
}

func makeKey(e *env, s *settings, path string) error {
	id, err := sign.Generate(path)
	if errors.Is(err, fs.ErrExist) {
		return fail(exitUsage, "a key is never written over", "%v", err)
	}
	if err != nil {
		return err
	}
	e.note("key %s; keep %s to yourself; to trust it here: cp %s.pub %s", id, path, path, s.pluginKeysDir())
	_, err = fmt.Fprintln(e.stdout, id)
	return err
}

func signPlugin(e *env, keyFile, in, out string) error {
	if filepath.Ext(in) == ".js" {
		return fail(exitUsage, "", "%s: a script carries no signature", in)
	}
	key, err := sign.ReadPrivate(keyFile)
	if err != nil {
		return fail(exitUsage, "", "%v", err)
	}
	file, err := readPlugin(in)
	if err != nil {
		return err
	}
	m, err := host.Inspect(file)
	if err != nil {
		return fail(exitUsage, "", "%v", err)
	}
	signed, err := sign.Sign(file, key)
	if err != nil {
		return err
	}
	if err := replaceFile(out, signed); err != nil {
		return fail(exitFailure, "", "%v", err)
	}
	s, err := sign.Read(signed)
	if err != nil {
		return err
	}
	e.note("%s@%s is signed with key %s: %s", m.Name, m.Version, s.Key, out)
	return nil
}

// replaceFile writes a file that is whole at every moment.
func replaceFile(path string, b []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return nil
}

func verifyPlugin(e *env, s *settings, path string) error {
	file, err := readPlugin(path)
	if err != nil {
		return err
	}
	keys, err := sign.ReadKeys(s.pluginKeysDir())
	if err != nil {
		return fail(exitUsage, "", "%v", err)
	}
	key, err := keys.Verify(file)
	if errors.Is(err, sign.ErrUnknown) {
		return fail(exitFailure, "keys that are trusted are *.pub files in "+filepath.ToSlash(s.pluginKeysDir()), "%v", err)
	}
	if err != nil {
		return fail(exitFailure, "", "%v", err)
	}
	_, err = fmt.Fprintf(e.stdout, "signed with key %s\n", key)
	return err
}
