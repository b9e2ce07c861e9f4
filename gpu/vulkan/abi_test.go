package vulkan

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// abiProgram is a C program that prints sizes, offsets and values of what vk.h declares,
// as the given header has them.
func abiProgram(declarations, header string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include <stdio.h>\n#include <stddef.h>\n#include %s\nint main(void) {\n", header)
	member := regexp.MustCompile(`(\w+)(\[\d+\])?;`)
	callback := regexp.MustCompile(`\(VKAPI_PTR \*(\w+)\)`)
	for _, s := range regexp.MustCompile(`(?s)typedef struct (\w+) \{\n(.*?)\n\} \w+;`).FindAllStringSubmatch(declarations, -1) {
		fmt.Fprintf(&b, "printf(\"%s %%zu\\n\", sizeof(%s));\n", s[1], s[1])
		for line := range strings.Lines(s[2] + "\n") {
			m := callback.FindStringSubmatch(line)
			if m == nil {
				m = member.FindStringSubmatch(line)
			}
			if name := m[1]; !strings.HasPrefix(name, "unused") {
				fmt.Fprintf(&b, "printf(\"%s.%s %%zu\\n\", offsetof(%s, %s));\n", s[1], name, s[1], name)
			}
		}
	}
	for _, v := range regexp.MustCompile(`(?m)^\t(VK_\w+) = `).FindAllStringSubmatch(declarations, -1) {
		fmt.Fprintf(&b, "printf(\"%s %%lld\\n\", (long long)%s);\n", v[1], v[1])
	}
	b.WriteString("return 0;\n}\n")
	return b.String()
}

func abi(t *testing.T, declarations, header string) []string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "abi.c"), filepath.Join(dir, "abi")
	if err := os.WriteFile(source, []byte(abiProgram(declarations, header)), 0o600); err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-I"+wd, "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// Our declarations have the layout of the headers that the machine has.
func TestDeclarationsMatchHeaders(t *testing.T) {
	if exec.Command("sh", "-c", "echo '#include <vulkan/vulkan_core.h>' | cc -fsyntax-only -xc -").Run() != nil {
		missing(t, "no Vulkan headers (Debian: apt-get install libvulkan-dev)")
	}
	text, err := os.ReadFile("vk.h")
	if err != nil {
		t.Fatal(err)
	}
	got, want := abi(t, string(text), `"vk.h"`), abi(t, string(text), "<vulkan/vulkan_core.h>")
	if len(got) != len(want) || len(got) < 300 {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s, the headers say %s", got[i], want[i])
		}
	}
}
