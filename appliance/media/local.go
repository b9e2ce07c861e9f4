package media

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"ganglion/appliance"
)

// notLocal refuses a path. Like every message here it does not repeat what the
// request holds, since names of files are as private as prompts.
func notLocal(it item) error {
	return it.errorf(CodeLocal, "is a path; no file is read for a request, send the bytes in base64")
}

// local reads a file that a request names, where the limits have a folder for such files:
// a path below it, absolute or from there on, or a file: address of one. Links that lead
// out of the folder are not followed. Whatever is wrong with a name is said in the same
// words, which tell nothing of what lies elsewhere.
func (r *reader) local(it item, name string) ([]byte, error) {
	if r.limits.Folder == "" {
		return nil, notLocal(it)
	}
	missing := it.errorf(CodeBroken, "names no file in the folder of media")
	name, ok := below(r.limits.Folder, strings.TrimSpace(name))
	if !ok {
		return nil, missing
	}
	root, err := os.OpenRoot(r.limits.Folder)
	if err != nil {
		return nil, missing
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|doNotWait, 0)
	if err != nil {
		return nil, missing
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, missing
	} else if err := r.size(it, info.Size()); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, r.limits.ItemBytes+1)) // it may grow meanwhile
	if err != nil {
		return nil, it.errorf(appliance.CodeInternal, "the file cannot be read")
	}
	if len(data) == 0 {
		return nil, it.errorf(CodeBroken, "is empty")
	}
	return data, r.size(it, int64(len(data)))
}

// below is a name as it is from the folder on.
func below(folder, name string) (string, bool) {
	if isFileAddress(name) {
		u, err := url.Parse(name)
		if err != nil || u.Host != "" && !strings.EqualFold(u.Host, "localhost") {
			return "", false
		}
		if name = u.Path; runtime.GOOS == "windows" {
			name = strings.TrimPrefix(name, "/")
		}
		if !filepath.IsAbs(filepath.FromSlash(name)) {
			return "", false
		}
	}
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		from, err := filepath.Abs(folder)
		if err == nil {
			name, err = filepath.Rel(from, name)
		}
		if err != nil {
			return "", false
		}
	}
	return name, filepath.IsLocal(name)
}

func isFileAddress(text string) bool {
	return len(text) >= 7 && strings.EqualFold(text[:7], "file://")
}
