package media

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/jsontext"
)

// A request names files of one folder, and none that lie elsewhere.
func TestFilesOfAFolder(t *testing.T) {
	base := t.TempDir()
	folder := filepath.Join(base, "media")
	write := func(name string, data []byte) {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("media/a.png", pngFile(3, 2))
	write("media/in it/b c.png", pngFile(3, 2))
	write("media/text.png", []byte("hello"))
	write("media/empty.png", nil)
	write("media/large.png", append(pngFile(3, 2), make([]byte, 4096)...))
	write("secret.png", pngFile(3, 2))
	for link, to := range map[string]string{"out.png": "../secret.png", "up": "..", "in.png": "a.png"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	l := DefaultLimits()
	l.Folder, l.ItemBytes = folder, 2048
	ask := func(text string, l Limits) ([]appliance.Media, error) {
		v, err := jsontext.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return Read(Fields{Images: v}, l)
	}
	abs := func(name string) string { return filepath.ToSlash(filepath.Join(base, name)) }
	for _, text := range []string{
		`[{"path":"a.png"}]`, `[{"path":"./a.png"}]`, `[{"path":"in it/b c.png"}]`, `["a.png"]`, `["./a.png"]`, `[{"path":"in.png"}]`,
		fmt.Sprintf(`[%q]`, abs("media/a.png")), fmt.Sprintf(`[{"path":%q}]`, abs("media/in it/b c.png")),
		fmt.Sprintf(`["file://%s"]`, abs("media/a.png")), fmt.Sprintf(`[{"image_url":{"url":"file://localhost%s"}}]`, strings.ReplaceAll(abs("media/in it/b c.png"), " ", "%20")),
		`[{"path":"in it/../a.png","max_tokens":9}]`,
	} {
		items, err := ask(text, l)
		if err != nil || len(items) != 1 || items[0].MIME != "image/png" || len(items[0].Data) != len(pngFile(3, 2)) {
			t.Errorf("%s: %+v, %v", text, items, err)
		}
		_, err = ask(text, DefaultLimits()) // no folder, no file
		wantCode(t, text, err, CodeLocal, "images[0]")
	}
	for _, text := range []string{
		`[{"path":"b.png"}]`, `[{"path":"../secret.png"}]`, `["../secret.png"]`, `[{"path":"out.png"}]`, `[{"path":"up/secret.png"}]`,
		`[{"path":"in it"}]`, `[{"path":""}]`, `[{"path":"a.png\u0000"}]`, `[{"path":"empty.png"}]`,
		fmt.Sprintf(`[{"path":%q}]`, abs("secret.png")), fmt.Sprintf(`["file://%s"]`, abs("secret.png")), fmt.Sprintf(`["file://host%s"]`, abs("media/a.png")),
		`["file://a.png"]`, `["/etc/passwd"]`, `["file:///dev/zero"]`,
	} {
		_, err := ask(text, l)
		wantCode(t, text, err, CodeBroken, "images[0]")
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "passwd") {
			t.Errorf("%v repeats the name", err)
		}
	}
	for text, code := range map[string]appliance.Code{
		`[{"path":"text.png"}]`: CodeUnknownType, `[{"path":"large.png"}]`: appliance.CodeMediaTooLarge, `[{"path":3}]`: appliance.CodeInvalidType,
		`[{"path":"a.png","data":"aGk="}]`: appliance.CodeInvalid, `["https://example.com/a.png"]`: CodeRemote,
	} {
		_, err := ask(text, l)
		wantCode(t, text, err, code, "images[0]")
	}
	l.TotalBytes = int64(len(pngFile(3, 2)))
	_, err := ask(`[{"path":"a.png"},"in.png"]`, l)
	wantCode(t, "all files", err, appliance.CodeMediaTooLarge, "images[1]")
	l.Folder = filepath.Join(base, "gone")
	_, err = ask(`[{"path":"a.png"}]`, l)
	wantCode(t, "no folder", err, CodeBroken, "images[0]")
}
