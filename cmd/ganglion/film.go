package main

import (
	"context"
	"os/exec"
	"path/filepath"

	"ganglion/appliance/media/film"
)

// filmEngine decodes films in child processes of this program, where the decoder is in
// it. The caller closes it.
func (s *settings) filmEngine() *film.Engine {
	o := film.Options{Cache: filepath.Join(s.paths.Cache, "film")}
	if s.e.executable != "" && film.HasModule() {
		o.Command = func(ctx context.Context, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, s.e.executable, append([]string{"internal", "film", "--"}, args...)...)
			cmd.Args[0] = "ganglion"
			return cmd
		}
	}
	return film.NewEngine(o)
}

// examineFilm says whether films can be decoded.
func (s *settings) examineFilm() finding {
	e := s.filmEngine()
	defer e.Close()
	if e.Status().State == film.Absent {
		return finding{"films", "note", "the decoder of films, AAC, Vorbis and AMR is not in this program; ./build.sh build puts it in"}
	}
	folder := filepath.Join(s.paths.Cache, "film")
	compiled := "compiled code in " + folder
	if files, err := filepath.Glob(filepath.Join(folder, "wazero-*", "*")); err != nil || len(files) == 0 {
		compiled = "it will be compiled into " + folder + " when a model with an encoder is loaded"
	}
	return finding{"films", "ok", "decoded by ffmpeg in a child process (GPL-3, see ganglion licenses); " + compiled}
}
