package appliance

import (
	"os"
	"path/filepath"
	"strings"
)

// PortableDir is the folder that, beside the binary, holds everything Ganglion
// writes: so it runs from a stick and leaves nothing on the machine.
const PortableDir = "ganglion-data"

// Paths are the folders Ganglion uses. None of them needs to exist.
type Paths struct {
	Config string // config.toml and the key file
	Data   string // models and plugins
	State  string // the request log
	Cache  string // repacked weights and compiled shaders; may be deleted at any time
}

// ConfigFile is the path of the configuration file.
func (p Paths) ConfigFile() string { return filepath.Join(p.Config, "config.toml") }

// FindPaths returns the folders for an operating system (a GOOS value), the
// environment, the folder of the binary (empty when unknown) and the user id.
// The only thing it looks at on disk is whether the portable folder exists.
//
// On Linux the folders are those of a service where systemd names them, for system
// accounts (user ids 1 to 999) and where there is no home; root with a home is a
// person. Variables of the XDG base directory specification win over both, save
// those that systemd sets.
func FindPaths(goos string, getenv func(string) string, exeDir string, uid int) Paths {
	portable := filepath.Join(exeDir, PortableDir)
	if exeDir != "" && isDir(portable) {
		return Paths{portable, portable, portable, portable}
	}
	var p Paths
	var ok bool
	switch goos {
	case "windows":
		p, ok = windowsPaths(getenv)
	case "darwin", "ios":
		p, ok = macPaths(getenv)
	default:
		p, ok = xdgPaths(getenv, uid), true
	}
	if !ok { // no home is known: beside the binary is better than nowhere
		return Paths{portable, portable, portable, portable}
	}
	return p
}

func windowsPaths(getenv func(string) string) (Paths, bool) {
	local := getenv("LOCALAPPDATA")
	if local == "" {
		profile := getenv("USERPROFILE")
		if profile == "" {
			return Paths{}, false
		}
		local = joinFor("windows", profile, "AppData", "Local")
	}
	base := joinFor("windows", local, "Ganglion")
	return Paths{base, base, base, joinFor("windows", base, "Cache")}, true
}

func macPaths(getenv func(string) string) (Paths, bool) {
	home := getenv("HOME")
	if home == "" {
		return Paths{}, false
	}
	base := joinFor("darwin", home, "Library", "Application Support", "Ganglion")
	return Paths{base, base, base, joinFor("darwin", home, "Library", "Caches", "Ganglion")}, true
}

// xdgPaths chooses each folder on its own: systemd's variable, then the XDG one,
// then the built-in place of a service or a person.
func xdgPaths(getenv func(string) string, uid int) Paths {
	home := getenv("HOME")
	service := home == "" || uid > 0 && uid < 1000 || getenv("STATE_DIRECTORY") != ""
	pick := func(systemd, xdg, system, person string) string {
		// systemd joins several folders with colons; the first is ours.
		if dir, _, _ := strings.Cut(getenv(systemd), ":"); dir != "" {
			return dir
		}
		// The specification has relative paths ignored.
		if dir := getenv(xdg); strings.HasPrefix(dir, "/") {
			return joinFor("linux", dir, "ganglion")
		}
		if service {
			return system
		}
		return joinFor("linux", home, person, "ganglion")
	}
	return Paths{
		Config: pick("CONFIGURATION_DIRECTORY", "XDG_CONFIG_HOME", "/etc/ganglion", ".config"),
		Data:   pick("STATE_DIRECTORY", "XDG_DATA_HOME", "/var/lib/ganglion", ".local/share"),
		State:  pick("STATE_DIRECTORY", "XDG_STATE_HOME", "/var/lib/ganglion", ".local/state"),
		Cache:  pick("CACHE_DIRECTORY", "XDG_CACHE_HOME", "/var/cache/ganglion", ".cache"),
	}
}

// joinFor joins with the separator of an operating system, which need not be ours.
func joinFor(goos string, elem ...string) string {
	sep := "/"
	if goos == "windows" {
		sep = `\`
	}
	elem[0] = strings.TrimRight(elem[0], sep)
	return strings.Join(elem, sep)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
