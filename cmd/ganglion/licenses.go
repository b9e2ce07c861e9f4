package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"ganglion"
	"ganglion/appliance/media/film"
)

const licensesText = `Ganglion is under the Apache License 2.0.
`

const filmLicenseText = `
The decoder of films in this program is ffmpeg n5.1.10 with x264, libvpx, libaom,
libwebp, LAME, libopus and zlib, compiled to WebAssembly: GNU General Public License,
version 3. It is a program of its own: data in this executable, which a child process
runs. Its source, and how it is built: https://codeberg.org/gruf/go-ffmpreg v0.6.22.
` + "`./build.sh build` with TAGS=noffmpeg makes an executable without it.\n"

func newLicenses(e *env) *cobra.Command {
	var texts bool
	c := &cobra.Command{
		Use: "licenses [flags]", Aliases: []string{"licences"}, Short: "Print the licences of what is in this program", Args: noArgs(""),
		RunE: func(*cobra.Command, []string) error {
			out := licensesText
			if film.HasModule() {
				out += filmLicenseText
			}
			out += "\nGo modules in this program, each under the licence that comes with its source:\n"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, m := range info.Deps {
					out += fmt.Sprintf("  %s %s\n", m.Path, m.Version)
				}
			}
			if texts {
				out += "\n" + ganglion.License
				if film.HasModule() {
					out += "\n" + film.Licence
				}
			} else {
				out += "\n--text prints the texts.\n"
			}
			_, err := fmt.Fprint(e.stdout, out)
			return err
		},
	}
	c.Flags().BoolVar(&texts, "text", false, "print the whole texts")
	return c
}
