// Kernelgen makes the SPIR-V of gpu/kernels and its table of bindings, and those of the
// kernels that gpu/device/devicetest checks drivers with. It runs in any folder of the
// repository and needs glslc:
//
//	go run ./cmd/kernelgen
//
// It does not import gpu/kernels, so that it also works while what it generates is
// broken, as after a merge.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ganglion/gpu/device"
	"ganglion/gpu/kernels/include"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kernelgen: error:", err)
		os.Exit(1)
	}
}

func run() error {
	all, err := collections()
	if err != nil {
		return err
	}
	for _, c := range all {
		made, err := c.generate()
		if err != nil {
			return err
		}
		if err := write(c.folder, made); err != nil {
			return err
		}
	}
	return nil
}

// collection is a folder of kernels, which is a package.
type collection struct {
	folder string
	files  fs.FS
	// borrowed is a text of gpu/kernels that the kernels include; the folder gets a copy
	// beside its SPIR-V, since a package embeds files of its own only.
	borrowed string
}

// collections finds the folders in the module that holds the working folder.
func collections() ([]collection, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	kernels, tests := filepath.Join(root, "gpu", "kernels"), filepath.Join(root, "gpu", "device", "devicetest")
	return []collection{
		{folder: kernels, files: os.DirFS(kernels)},
		{folder: tests, files: overlay{os.DirFS(tests), os.DirFS(kernels)}, borrowed: "common.glsl"},
	}, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the working folder")
		}
	}
}

// overlay has the files of one folder, and of another those whose names it has not.
type overlay struct{ own, other fs.FS }

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.own.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o.other.Open(name)
	}
	return f, err
}

// generate makes the folder's files, by their names in it.
func (c collection) generate() (map[string][]byte, error) {
	made, err := generate(c.files, filepath.Base(c.folder))
	if err == nil && c.borrowed != "" {
		made["generated/"+c.borrowed], err = fs.ReadFile(c.files, c.borrowed)
	}
	return made, err
}

// generate compiles every .comp file of a folder and returns the files to write by
// their names in it; the table is of a package. One error names every kernel that does
// not compile.
func generate(files fs.FS, pkg string) (map[string][]byte, error) {
	compiler, err := compilerVersion()
	if err != nil {
		return nil, err
	}
	sources, err := fs.Glob(files, "*.comp")
	if err != nil {
		return nil, err
	}
	slices.Sort(sources)
	shaders, errs := compileAll(files, sources)
	var failed []string
	made := map[string][]byte{}
	for i := range shaders {
		s := &shaders[i]
		if errs[i] == nil {
			errs[i] = s.findBase(shaders)
		}
		if errs[i] != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", sources[i], errs[i]))
			continue
		}
		made["generated/"+s.Name+".spv"] = s.SPIRV
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(failed, "\n"))
	}
	made["table.go"], err = tableText(compiler, pkg, shaders)
	return made, err
}

// findBase names the kernel of the base set that a variant can stand for, and checks that
// it can.
func (k *kernel) findBase(all []kernel) error {
	if k.Needs == "" {
		return nil
	}
	base, named := strings.CutSuffix(k.Name, "_"+string(k.Needs))
	at := slices.IndexFunc(all, func(o kernel) bool { return o.Name == base })
	switch {
	case !named:
		return fmt.Errorf("kernelgen: it needs %s, so its name must end with _%s", k.Needs, k.Needs)
	case at < 0:
		return fmt.Errorf("kernelgen: a variant of %s, which there is not", base)
	}
	if b := all[at]; !slices.Equal(k.Bindings, b.Bindings) || !slices.Equal(k.Constants, b.Constants) || k.ParamBytes != b.ParamBytes {
		return fmt.Errorf("kernelgen: other bindings, constants or parameters than %s", base)
	}
	k.Base = base
	return nil
}

// compilers is how many glslc run at once.
const compilers = 2

func compileAll(files fs.FS, sources []string) ([]kernel, []error) {
	shaders, errs := make([]kernel, len(sources)), make([]error, len(sources))
	var wait sync.WaitGroup
	slots := make(chan struct{}, compilers)
	for i, source := range sources {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			shaders[i], errs[i] = compile(files, source)
		})
	}
	wait.Wait()
	return shaders, errs
}

// compile makes the SPIR-V and the table's entry of one kernel. What the table needs is
// read from a second module, since the optimised one has no names and lacks what is not
// used.
func compile(files fs.FS, source string) (kernel, error) {
	text, err := include.Resolve(files, source)
	if err != nil {
		return kernel{}, err
	}
	text = "#version 450\n" + text
	named, err := glslc(text, "-O0", "-g")
	if err != nil {
		return kernel{}, err
	}
	s, err := reflect(strings.TrimSuffix(source, ".comp"), named)
	if err != nil {
		return s, err
	}
	if len(s.Constants) == 0 || s.Constants[0].Name != "WG" {
		return s, fmt.Errorf("constant 0 is not WG")
	}
	s.SPIRV, err = glslc(text, "-O")
	return s, err
}

// glslc compiles a text for Vulkan 1.1.
func glslc(text string, options ...string) ([]byte, error) {
	cmd := exec.Command("glslc", append(options, "--target-env=vulkan1.1", "-fshader-stage=compute", "-o", "-", "-")...)
	cmd.Stdin = strings.NewReader(text)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("glslc: %w\n%s", err, problems.Bytes())
	}
	return out.Bytes(), nil
}

// compilerVersion is the version of glslc and of what it is made of. The bytes that it
// writes depend on it.
func compilerVersion() (string, error) {
	out, err := exec.Command("glslc", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("glslc: %w (Debian: apt-get install glslc)", err)
	}
	version, _, _ := strings.Cut(string(out), "\n\n")
	return strings.Join(strings.Fields(version), " "), nil
}

// tableText is table.go.
func tableText(compiler, pkg string, shaders []kernel) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by kernelgen. DO NOT EDIT.\n\npackage %s\n\nimport \"ganglion/gpu/device\"\n\n", pkg)
	fmt.Fprintf(&b, "// compiler made generated/*.spv; another version makes other bytes.\nconst compiler = %q\n\n", compiler)
	b.WriteString("var table = []device.Shader{\n")
	for _, s := range shaders {
		fmt.Fprintf(&b, "\t{\n\t\tName: %q, ParamBytes: %d,\n", s.Name, s.ParamBytes)
		if s.Needs != "" {
			fmt.Fprintf(&b, "\t\tNeeds: %q, Base: %q,\n", s.Needs, s.Base)
		}
		if s.shared != "" {
			fmt.Fprintf(&b, "\t\tShared: func(c []uint32) int { return %s },\n", s.shared)
		}
		b.WriteString("\t\tBindings: []device.Binding{")
		for i, v := range s.Bindings {
			fmt.Fprintf(&b, "%s{Name: %q%s}", comma(i), v.Name, flags(v))
		}
		b.WriteString("},\n\t\tConstants: []device.Constant{")
		for i, v := range s.Constants {
			fmt.Fprintf(&b, "%s{Name: %q, Default: %d}", comma(i), v.Name, v.Default)
		}
		b.WriteString("},\n\t},\n")
	}
	b.WriteString("}\n")
	return format.Source(b.Bytes())
}

func flags(b device.Binding) string {
	switch {
	case b.Texels:
		return ", ReadOnly: true, Texels: true"
	case b.ReadOnly:
		return ", ReadOnly: true"
	}
	return ""
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}

// write puts the files in place and removes what no kernel makes any more.
func write(folder string, made map[string][]byte) error {
	if err := os.MkdirAll(filepath.Join(folder, "generated"), 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, "generated", "*.spv"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, kept := made["generated/"+filepath.Base(path)]; !kept {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, data := range made {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, data) {
			continue
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
