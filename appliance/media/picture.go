package media

import (
	"errors"
	"strings"

	"ganglion/appliance/media/picture"
)

// unread is an error about a file that is whole but of a kind that is not read.
type unread string

func (u unread) Error() string { return string(u) }

// pictureHeader reads what a picture declares.
func pictureHeader(data []byte) (header, error) {
	info, err := picture.Describe(data)
	if err != nil {
		return header{}, pictureError(err)
	}
	return header{picture: true, width: int64(info.W), height: int64(info.H), memory: info.Bytes}, nil
}

// pictureBody tells whether the rest of a picture hangs together.
func pictureBody(data []byte) error {
	if err := picture.Verify(data); err != nil {
		return pictureError(err)
	}
	return nil
}

// plain is what an error of package picture says, without the package.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "picture: ") }

// pictureError is an error of package picture in the words of this one.
func pictureError(err error) error {
	switch {
	case errors.Is(err, picture.ErrShort):
		return errShort
	case errors.Is(err, picture.ErrUnsupported):
		return unread(strings.TrimPrefix(plain(err), picture.ErrUnsupported.Error()+": "))
	}
	return errors.New(plain(err))
}
