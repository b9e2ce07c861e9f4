package appliance

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// splitName is the name of a part of a split model: NAME-00001-of-00003.gguf.
var splitName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// splitFile is a part of a split model, as its name has it.
type splitFile struct {
	stem      string // path before the numbers
	no, count int    // from 1
}

func splitPart(path string) (splitFile, bool) {
	m := splitName.FindStringSubmatch(path)
	if m == nil {
		return splitFile{}, false
	}
	no, _ := strconv.Atoi(m[2]) // five digits always fit
	count, _ := strconv.Atoi(m[3])
	return splitFile{m[1], no, count}, no >= 1 && no <= count && count > 1
}

func (p splitFile) path(no int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", p.stem, no, p.count)
}

// join turns the entry of a part into that of the whole model, whose path is that of
// its first part on disk.
func (p splitFile) join(f Found) Found {
	f.Name, f.Bytes = modelName(p.stem), 0
	missing := 0
	for no := p.count; no >= 1; no-- {
		info, err := os.Stat(p.path(no))
		if err != nil {
			missing++
			continue
		}
		f.Path = p.path(no)
		f.Bytes += info.Size()
	}
	if missing > 0 {
		f.Available = false
		f.Note = fmt.Sprintf("%d of its %d files are missing", missing, p.count)
	}
	return f
}
