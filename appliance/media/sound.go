package media

import (
	"errors"

	"ganglion/appliance/media/sound"
)

// Bounds of what a descriptor may declare about headerless samples.
const (
	maxChannels = 32
	maxRate     = 768_000 // Hz
)

// Format tags of the WAV header that is put before headerless samples.
const (
	wavPCM   = 1
	wavFloat = 3
)

// soundHeader tells how long a sound is that is decoded here.
func soundHeader(b []byte) (header, error) {
	info, err := sound.Inspect(b)
	var e *sound.Error
	switch {
	case errors.As(err, &e) && e.Kind == sound.ErrUnsupported:
		return header{}, unread(e.Reason)
	case errors.As(err, &e):
		return header{}, errors.New(e.Reason)
	case err != nil:
		return header{}, err
	}
	return header{seconds: info.Seconds()}, nil
}

// foreignSound is soundHeader for containers whose codec another decoder may know:
// what is not read here is for that to say.
func foreignSound(b []byte) (header, error) {
	h, err := soundHeader(b)
	if errors.As(err, new(unread)) {
		return header{}, nil
	}
	return h, err
}

// foreignWAV is soundHeader for WAV, of which another decoder knows some encodings.
func foreignWAV(b []byte) (header, error) {
	h, err := soundHeader(b)
	if errors.As(err, new(unread)) {
		if _, seconds, ok := sound.Length(b); ok {
			return header{seconds: seconds}, nil
		}
	}
	return h, err
}
