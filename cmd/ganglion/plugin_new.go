package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/plugins/js"
	"ganglion/plugins/sdk"
)

var pluginName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

func newPluginNew(e *env) *cobra.Command {
	var lang, dir string
	languages := append(sdk.Languages(), "js")
	c := &cobra.Command{
		Use:   "new [flags] NAME",
		Short: "Begin a plugin: a folder with an example in it",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fail(exitUsage, "for example `ganglion plugin new my-sampler`", "new takes one name, got %d arguments", len(args))
			}
			if !pluginName.MatchString(args[0]) {
				return fail(exitUsage, "", "%q is no name of a plugin: 1 to 64 of a-z, 0-9 and -", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(languages, lang) {
				return fail(exitUsage, "", "--lang %q is none of %s", lang, strings.Join(languages, ", "))
			}
			if dir == "" {
				dir = args[0]
			}
			if lang == "js" {
				path, err := js.New(dir, args[0])
				if err != nil {
					return fail(exitUsage, "--dir names another folder", "%v", err)
				}
				e.note("%s is begun; next: ganglion plugin test %s", args[0], filepath.ToSlash(path))
				return nil
			}
			if err := sdk.New(dir, lang, args[0]); err != nil {
				return fail(exitUsage, "--dir names another folder", "%v", err)
			}
			e.note("%s is begun; next: ganglion plugin build %s", args[0], filepath.ToSlash(dir))
			return nil
		},
	}
	c.Flags().StringVar(&lang, "lang", "c", "`LANGUAGE` to write it in: "+strings.Join(languages, ", "))
	c.Flags().StringVar(&dir, "dir", "", "`FOLDER` to make (default: the name)")
	return c
}
