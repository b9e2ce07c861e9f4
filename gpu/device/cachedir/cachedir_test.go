package cachedir

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Whatever others could have written is refused, and nothing else.
func TestOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders have no such permissions")
	}
	for _, tt := range []struct {
		name  string
		spoil func(folder, file string) error
		ok    bool
	}{
		{"nothing", func(folder, file string) error { return nil }, true},
		{"folder of everyone", func(folder, file string) error { return os.Chmod(folder, 0o777) }, false},
		{"folder of a group", func(folder, file string) error { return os.Chmod(folder, 0o770) }, false},
		{"file of everyone", func(folder, file string) error { return os.Chmod(file, 0o666) }, false},
		{"link to a file", func(folder, file string) error {
			if err := os.Rename(file, file+".real"); err != nil {
				return err
			}
			return os.Symlink(file+".real", file)
		}, false},
		{"folder instead of a file", func(folder, file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o700)
		}, false},
		{"link to a folder", func(folder, file string) error {
			if err := os.Rename(folder, folder+".real"); err != nil {
				return err
			}
			return os.Symlink(folder+".real", folder)
		}, false},
		{"another user's file", func(folder, file string) error { return os.Chown(file, os.Geteuid()+1, -1) }, false},
		{"another user's folder", func(folder, file string) error { return os.Chown(folder, os.Geteuid()+1, -1) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "cache")
			file := filepath.Join(folder, "file")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(folder, file); os.IsPermission(err) {
				t.Skip(err) // only root gives files away
			} else if err != nil {
				t.Fatal(err)
			}
			f, err := Open(folder, file)
			if (err == nil) != tt.ok {
				t.Errorf("%v", err)
			}
			if f != nil {
				f.Close()
			}
		})
	}
	if _, err := Open(t.TempDir(), "none"); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}
