package appliance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// settingRank orders the sources of values; the higher wins.
type settingRank int

const (
	rankDefault settingRank = iota
	rankFile
	rankEnv
	rankFlag
)

// settingSource is where a value comes from.
type settingSource struct {
	rank settingRank
	text string
}

// settingsLoader applies the sources in order of rank, so that a later one overwrites.
type settingsLoader struct {
	settings *Settings
	origins  map[string]settingSource // by setting name
}

// apply sets a setting, naming the source in an error.
func (l *settingsLoader) apply(r *settingRow, values []string, from settingSource) error {
	if err := r.set(l.settings, values); err != nil {
		return fmt.Errorf("appliance: %s: %w", from.text, err)
	}
	l.origins[r.Name] = from
	return nil
}

func (l *settingsLoader) defaults() error {
	for _, r := range settingRows() {
		from := settingSource{rankDefault, "default"}
		l.origins[r.Name] = from
		if r.Default == "" {
			continue
		}
		if err := l.apply(&r, []string{r.Default}, from); err != nil {
			return err
		}
	}
	return nil
}

func (l *settingsLoader) environment(getenv func(string) string) error {
	for _, r := range settingRows() {
		v := getenv(r.Env)
		if v == "" {
			continue
		}
		values := []string{v}
		if r.IsList {
			values = splitList(v, r.separator)
		}
		if err := l.apply(&r, values, settingSource{rankEnv, "environment " + r.Env}); err != nil {
			return err
		}
	}
	return nil
}

// splitList parts a variable into its values, without empty ones.
func splitList(v, separator string) []string {
	var values []string
	for item := range strings.SplitSeq(v, separator) {
		if item = strings.TrimSpace(item); item != "" {
			values = append(values, item)
		}
	}
	return values
}

func (l *settingsLoader) flags(flags map[string][]string) error {
	known := map[string]bool{}
	for _, r := range settingRows() {
		known[r.Name] = r.Flag != ""
		values := flags[r.Name]
		if len(values) == 0 || r.Flag == "" {
			continue
		}
		if err := l.apply(&r, slices.Clone(values), settingSource{rankFlag, "flag --" + r.Flag}); err != nil {
			return err
		}
	}
	for name := range flags {
		if !known[name] {
			return fmt.Errorf("appliance: flags: no setting %q can be given on the command line", name)
		}
	}
	return nil
}

// maxConfigBytes bounds the configuration and the key file.
const maxConfigBytes = 1 << 20

func (l *settingsLoader) file(path string) error {
	if path == "" {
		return nil
	}
	content, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("appliance: configuration: %w", err)
	}
	var tree map[string]any
	if _, err := toml.Decode(string(content), &tree); err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return fmt.Errorf("appliance: %s:%d: %s", path, parse.Position.Line, parse.Message)
		}
		return fmt.Errorf("appliance: %s: %w", path, err)
	}
	return l.tree(path, string(content), tree)
}

// tree applies the decoded file in the order of the table, so that the first error
// does not depend on the order of a map.
func (l *settingsLoader) tree(path, content string, tree map[string]any) error {
	for _, r := range settingRows() {
		v, ok := tree[r.Key]
		if r.Key == "" || !ok {
			continue
		}
		delete(tree, r.Key)
		values, err := tomlValues(v, r.kind)
		if err == nil {
			err = r.set(l.settings, values)
		}
		if err != nil {
			return fmt.Errorf("appliance: %s:%d: %s: %w", path, keyLine(content, r.Key), r.Key, err)
		}
		l.origins[r.Name] = settingSource{rankFile, "file " + path}
	}
	return unknownKey(path, content, tree)
}

// unknownKey reports the first key of the file that no setting has taken.
func unknownKey(path, content string, tree map[string]any) error {
	first, at := "", 0
	for key := range tree {
		if line := keyLine(content, key); first == "" || line < at || line == at && key < first {
			first, at = key, line
		}
	}
	switch {
	case first == "":
		return nil
	case first == "key":
		return fmt.Errorf("appliance: %s:%d: the key does not belong here: name a file with key_file or set GANGLION_KEY", path, at)
	}
	return fmt.Errorf("appliance: %s:%d: unknown key %q", path, at, first)
}

// keyLine finds the line of a top-level key or table; the decoder does not tell. It is
// 1 where the key is written in a way that is not found.
func keyLine(content, key string) int {
	q := regexp.QuoteMeta(key)
	pattern := regexp.MustCompile(`(?m)^[ \t]*\[{0,2}[ \t]*(?:` + q + `|"` + q + `"|'` + q + `')[ \t]*[=.\]]`)
	at := pattern.FindStringIndex(content)
	if at == nil {
		return 1
	}
	return 1 + strings.Count(content[:at[0]], "\n")
}

// tomlValues turns a value of the file into the text a flag would have.
func tomlValues(v any, k settingKind) ([]string, error) {
	switch v := v.(type) {
	case string:
		if k == kindText || k == kindBytes || k == kindList {
			return []string{v}, nil
		}
	case bool:
		if k == kindBool {
			return []string{strconv.FormatBool(v)}, nil
		}
	case int64:
		if k == kindInt || k == kindFloat || k == kindBytes {
			return []string{strconv.FormatInt(v, 10)}, nil
		}
	case float64:
		if k == kindFloat {
			return []string{strconv.FormatFloat(v, 'g', -1, 64)}, nil
		}
	case []any:
		if k == kindList {
			return tomlList(v)
		}
	}
	return nil, fmt.Errorf("must be %s", k)
}

func tomlList(v []any) ([]string, error) {
	values := make([]string, len(v))
	for i, item := range v {
		s, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("must be %s", kindList)
		}
		values[i] = s
	}
	return values, nil
}

func (k settingKind) String() string {
	switch k {
	case kindBool:
		return "true or false"
	case kindInt:
		return "an integer"
	case kindFloat:
		return "a number"
	case kindBytes:
		return "a size such as \"1GiB\""
	case kindList:
		return "a list of strings"
	}
	return "a string"
}

// keyFile reads the key, unless the key itself comes from a source at least as high.
func (l *settingsLoader) keyFile() error {
	s := l.settings
	from := l.origins["key-file"]
	if s.KeyFile == "" {
		return nil
	}
	if s.Key != "" && l.origins["key"].rank >= from.rank {
		s.KeyFile = ""
		return nil
	}
	key, err := readKey(s.KeyFile)
	if err != nil {
		return fmt.Errorf("appliance: --key-file: %w", err)
	}
	s.Key = key
	l.origins["key"] = settingSource{from.rank, "file " + s.KeyFile}
	return nil
}

// readKey reads a key file. Others must not be able to read it, where the system has
// such permissions.
func readKey(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return "", fmt.Errorf("%s: has mode %04o, so others can read the key: chmod 600 it", path, mode)
	}
	content, err := readSmall(path)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(content))
	if key == "" {
		return "", fmt.Errorf("%s: is empty", path)
	}
	return key, nil
}

// readSmall reads a regular file of at most maxConfigBytes.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", path)
	case info.Size() > maxConfigBytes:
		return nil, fmt.Errorf("%s: has %d bytes, at most %d are read", path, info.Size(), maxConfigBytes)
	}
	return os.ReadFile(filepath.Clean(path))
}

// resolved lists every setting as it was decided.
func (l *settingsLoader) resolved() []Resolved {
	rows := settingRows()
	out := make([]Resolved, len(rows))
	for i, r := range rows {
		v := r.get(l.settings)
		if r.secret && v != "" {
			v = "(set)"
		}
		out[i] = Resolved{Name: r.Name, Value: v, Origin: l.origins[r.Name].text}
	}
	return out
}
