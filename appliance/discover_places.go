package appliance

import (
	"path/filepath"
	"strings"
)

// place is a folder that may hold models.
type place struct {
	dir    string
	source string
	depth  int  // folders below it that are looked into
	ollama bool // models lie in blobs that manifests name
}

// places lists the folders in the order of preference.
func places(o DiscoverOptions) []place {
	var list []place
	add := func(source string, depth int, dirs ...string) {
		for _, d := range dirs {
			if d != "" {
				list = append(list, place{dir: d, source: source, depth: depth, ollama: source == "Ollama"})
			}
		}
	}
	add("Ganglion", maxScanDepth, o.DataDir)
	if o.Executable != "" {
		add("folder", 0, filepath.Dir(o.Executable))
	}
	add("folder", 0, o.WorkDir)
	add("Hugging Face", maxScanDepth, hubCaches(o)...)
	add("llama.cpp", 2, llamaCaches(o)...)
	add("LM Studio", maxScanDepth, under(o.Home, ".lmstudio/models", ".cache/lm-studio/models")...)
	add("Ollama", 0, ollamaDirs(o)...)
	add("Jan", maxScanDepth, janDirs(o)...)
	add("config", maxScanDepth, o.Extra...)
	return list
}

// under joins slash-separated paths to a folder; it returns none for an empty one.
func under(dir string, names ...string) []string {
	if dir == "" {
		return nil
	}
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = filepath.Join(dir, filepath.FromSlash(n))
	}
	return paths
}

// hubCaches is the cache of the Hugging Face hub: the first variable that is set wins.
func hubCaches(o DiscoverOptions) []string {
	for _, v := range []struct{ name, below string }{
		{"LLAMA_CACHE", ""}, {"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "hub"}, {"XDG_CACHE_HOME", "huggingface/hub"},
	} {
		if dir := o.Getenv(v.name); dir != "" {
			return under(dir, v.below)
		}
	}
	return under(o.Home, ".cache/huggingface/hub")
}

// llamaCaches is where llama.cpp kept its downloads before it used the hub's cache.
func llamaCaches(o DiscoverOptions) []string {
	if dir := o.Getenv("LLAMA_CACHE"); dir != "" {
		return []string{dir}
	}
	switch o.GOOS {
	case "windows":
		return under(o.Getenv("LOCALAPPDATA"), "llama.cpp")
	case "darwin":
		return under(o.Home, "Library/Caches/llama.cpp")
	}
	if dir := o.Getenv("XDG_CACHE_HOME"); dir != "" {
		return under(dir, "llama.cpp")
	}
	return under(o.Home, ".cache/llama.cpp")
}

func ollamaDirs(o DiscoverOptions) []string {
	if dir := o.Getenv("OLLAMA_MODELS"); dir != "" {
		return []string{dir}
	}
	dirs := under(o.Home, ".ollama/models")
	if o.GOOS == "linux" {
		dirs = append(dirs, "/usr/share/ollama/.ollama/models") // its system service
	}
	return dirs
}

func janDirs(o DiscoverOptions) []string {
	switch o.GOOS {
	case "windows":
		return under(o.Getenv("APPDATA"), "Jan/data")
	case "darwin":
		return under(o.Home, "Library/Application Support/Jan/data")
	}
	if dir := o.Getenv("XDG_DATA_HOME"); dir != "" {
		return under(dir, "Jan/data")
	}
	return under(o.Home, ".local/share/Jan/data")
}

// isModelName tells whether a file name is worth a look.
func isModelName(name string) bool {
	return strings.EqualFold(filepath.Ext(name), ".gguf") && !isProjectorName(name)
}
