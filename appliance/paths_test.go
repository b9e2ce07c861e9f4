package appliance

import (
	"os"
	"path/filepath"
	"testing"
)

func getenvOf(m map[string]string) func(string) string {
	return func(name string) string { return m[name] }
}

func TestFindPaths(t *testing.T) {
	type vars = map[string]string
	for _, c := range []struct {
		name, goos string
		env        vars
		uid        int
		want       Paths
	}{
		{"linux person", "linux", vars{"HOME": "/home/a"}, 1000,
			Paths{"/home/a/.config/ganglion", "/home/a/.local/share/ganglion", "/home/a/.local/state/ganglion", "/home/a/.cache/ganglion"}},
		{"linux root with a home", "linux", vars{"HOME": "/root"}, 0,
			Paths{"/root/.config/ganglion", "/root/.local/share/ganglion", "/root/.local/state/ganglion", "/root/.cache/ganglion"}},
		{"linux XDG", "linux", vars{"HOME": "/home/a", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d/", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k"}, 1000,
			Paths{"/c/ganglion", "/d/ganglion", "/s/ganglion", "/k/ganglion"}},
		{"linux relative XDG is ignored", "linux", vars{"HOME": "/home/a", "XDG_CACHE_HOME": "k"}, 1000,
			Paths{"/home/a/.config/ganglion", "/home/a/.local/share/ganglion", "/home/a/.local/state/ganglion", "/home/a/.cache/ganglion"}},
		{"linux service without a home", "linux", vars{}, 0,
			Paths{"/etc/ganglion", "/var/lib/ganglion", "/var/lib/ganglion", "/var/cache/ganglion"}},
		{"linux system account", "linux", vars{"HOME": "/nonexistent"}, 998,
			Paths{"/etc/ganglion", "/var/lib/ganglion", "/var/lib/ganglion", "/var/cache/ganglion"}},
		{"linux systemd", "linux", vars{"HOME": "/", "STATE_DIRECTORY": "/var/lib/g:/var/lib/h", "CACHE_DIRECTORY": "/var/cache/g"}, 61184,
			Paths{"/etc/ganglion", "/var/lib/g", "/var/lib/g", "/var/cache/g"}},
		{"freebsd", "freebsd", vars{"HOME": "/home/a"}, 1001,
			Paths{"/home/a/.config/ganglion", "/home/a/.local/share/ganglion", "/home/a/.local/state/ganglion", "/home/a/.cache/ganglion"}},
		{"macOS", "darwin", vars{"HOME": "/Users/a", "XDG_CACHE_HOME": "/k"}, 501,
			Paths{"/Users/a/Library/Application Support/Ganglion", "/Users/a/Library/Application Support/Ganglion", "/Users/a/Library/Application Support/Ganglion", "/Users/a/Library/Caches/Ganglion"}},
		{"Windows", "windows", vars{"LOCALAPPDATA": `C:\Users\a\AppData\Local`}, -1,
			Paths{`C:\Users\a\AppData\Local\Ganglion`, `C:\Users\a\AppData\Local\Ganglion`, `C:\Users\a\AppData\Local\Ganglion`, `C:\Users\a\AppData\Local\Ganglion\Cache`}},
		{"Windows without LOCALAPPDATA", "windows", vars{"USERPROFILE": `C:\Users\a`}, -1,
			Paths{`C:\Users\a\AppData\Local\Ganglion`, `C:\Users\a\AppData\Local\Ganglion`, `C:\Users\a\AppData\Local\Ganglion`, `C:\Users\a\AppData\Local\Ganglion\Cache`}},
		{"macOS without a home", "darwin", vars{}, 501,
			Paths{"/nowhere/ganglion-data", "/nowhere/ganglion-data", "/nowhere/ganglion-data", "/nowhere/ganglion-data"}},
		{"Windows without a home", "windows", vars{}, -1,
			Paths{"/nowhere/ganglion-data", "/nowhere/ganglion-data", "/nowhere/ganglion-data", "/nowhere/ganglion-data"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := FindPaths(c.goos, getenvOf(c.env), filepath.FromSlash("/nowhere"), c.uid); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestFindPathsPortable(t *testing.T) {
	dir := t.TempDir()
	portable := filepath.Join(dir, PortableDir)
	home := getenvOf(map[string]string{"HOME": "/h", "LOCALAPPDATA": `C:\l`, "XDG_DATA_HOME": "/d", "STATE_DIRECTORY": "/s"})
	want := Paths{portable, portable, portable, portable}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if got := FindPaths(goos, home, dir, 1000); got == want {
			t.Errorf("%s: portable without the folder", goos)
		}
	}
	// A file of that name is no portable folder.
	if err := os.WriteFile(portable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := FindPaths("linux", home, dir, 1000); got == want {
		t.Error("a file was taken for the portable folder")
	}
	if err := os.Remove(portable); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(portable, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		if got := FindPaths(goos, home, dir, 1000); got != want {
			t.Errorf("%s: got %+v, want %+v", goos, got, want)
		}
	}
	if got, want := want.ConfigFile(), filepath.Join(portable, "config.toml"); got != want {
		t.Errorf("ConfigFile %q, want %q", got, want)
	}
}
