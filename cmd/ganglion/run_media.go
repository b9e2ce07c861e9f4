package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/pflag"

	"ganglion/appliance"
	"ganglion/appliance/media"
)

// mediaFlags name the files that go into a prompt, in the order of the contract's fields.
type mediaFlags struct{ images, audios, videos []string }

func (m *mediaFlags) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&m.images, "image", nil, "picture `FILE` for the model to see; may be repeated")
	f.StringArrayVar(&m.audios, "audio", nil, "sound `FILE` for the model to hear; may be repeated")
	f.StringArrayVar(&m.videos, "video", nil, "film `FILE` for the model to see; may be repeated")
}

// mediaLimits are the limits that the settings say.
func mediaLimits(s *appliance.Settings) media.Limits {
	l := media.DefaultLimits()
	l.ItemBytes, l.TotalBytes, l.Pixels = s.MediaBytes, 2*s.MediaBytes, int64(s.ImagePixels)
	l.Seconds, l.Frames = s.MediaSeconds, s.VideoFrames
	return l
}

// read reads the files within the limits of a server.
func (m *mediaFlags) read(s *appliance.Settings) ([]appliance.Media, error) {
	l := mediaLimits(s)
	var files media.Files
	for _, f := range []struct {
		paths []string
		into  *[][]byte
	}{{m.images, &files.Images}, {m.audios, &files.Audios}, {m.videos, &files.Videos}} {
		for _, path := range f.paths {
			b, err := readAtMost(path, l.ItemBytes+1) // one more tells that it is too large
			if err != nil {
				return nil, fail(exitUsage, "", "%v", err)
			}
			*f.into = append(*f.into, b)
		}
	}
	return media.ReadFiles(files, l)
}

func readAtMost(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, n))
	return b, errors.Join(err, f.Close())
}

// looking joins a model with its encoder where a request has media. After an error the model
// still belongs to the caller.
func (s *settings) looking(ctx context.Context, r *appliance.Request, m appliance.Model, e *closingEngine) (appliance.Model, error) {
	if len(r.Media) == 0 {
		return m, nil
	}
	return s.withEncoder(ctx, m, e.found, e.backend)
}
