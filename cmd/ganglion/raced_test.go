package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Tests that are left out under the race detector must be run without it: by build.sh's
// lists of tests, or with their whole package.

// raceFlags are the constants by which the packages know the race detector.
var raceFlags = []string{"raceEnabled", "raceDetector", "racing", "raced"}

// leaving lists a package's functions that skip a test under the race detector by themselves.
func leaving(files []*ast.File) (names []string) {
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && slices.ContainsFunc(f.Body.List, skipsRaced) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// skipsRaced tells whether a statement is: if the race detector is there, skip.
func skipsRaced(s ast.Stmt) bool {
	cond, ok := s.(*ast.IfStmt)
	if !ok || !mentions(cond.Cond, raceFlags) {
		return false
	}
	return slices.ContainsFunc(cond.Body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := e.X.(*ast.CallExpr)
		return ok && strings.HasPrefix(types.ExprString(call.Fun), "t.Skip")
	})
}

func mentions(n ast.Node, names []string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && slices.Contains(names, id.Name)
		return !found
	})
	return found
}

// leftOut lists the tests of a package that are left out under the race detector: those that
// skip by themselves, and those that call a function which does.
func leftOut(files []*ast.File) (tests []string) {
	direct := leaving(files)
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			if slices.Contains(direct, f.Name.Name) || mentions(f.Body, direct) {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	return tests
}

// runs is what build.sh says of the tests of a folder: whether they run without the race
// detector, and whether they run with it.
type runs struct {
	whole, compared, shared *regexp.Regexp
	folders                 []string // of the tests that are named
}

// without tells whether a test runs without the race detector.
func (r runs) without(dir, test string) bool {
	return r.whole.MatchString("ganglion/"+dir) ||
		slices.Contains(r.folders, dir) && (r.compared.MatchString(test) || r.shared.MatchString(test))
}

// nowhere tells whether a test that does not skip runs nowhere.
func (r runs) nowhere(dir, test string) bool {
	return r.compared.MatchString(test) && !r.without(dir, test)
}

// readRuns reads what build.sh runs.
func readRuns(t *testing.T) runs {
	t.Helper()
	script, err := os.ReadFile("../../build.sh")
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		m := regexp.MustCompile(`(?m)^\s*(?:local )?` + name + `='([^']+)'$`).FindSubmatch(script)
		if m == nil {
			t.Fatalf("build.sh does not set %s", name)
		}
		return string(m[1])
	}
	named := regexp.MustCompile(`-run "\^\(\$COMPARED\|\$SHARED\)\\\$"((?: \./[a-z/]+)+)`).FindSubmatch(script)
	if named == nil {
		t.Fatal("build.sh does not run what it names")
	}
	return runs{
		whole:    regexp.MustCompile(value("slow")),
		compared: regexp.MustCompile("^(" + value("COMPARED") + ")$"),
		shared:   regexp.MustCompile("^(" + value("SHARED") + ")$"),
		folders:  strings.Fields(strings.ReplaceAll(string(named[1]), "./", "")),
	}
}

// packages gives the test files of each folder below the project's.
func packages(t *testing.T) map[string][]*ast.File {
	t.Helper()
	found := map[string][]*ast.File{}
	eachTestFile(t, func(path string, _ *token.FileSet, file *ast.File) {
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.FromSlash("../../")))
		found[dir] = append(found[dir], file)
	})
	return found
}

// Every test runs somewhere: one that is left out under the race detector without it, and one
// that build.sh keeps from the race detector by its name in a folder whose tests it names.
func TestEveryTestRunsSomewhere(t *testing.T) {
	runs, seen := readRuns(t), 0
	for dir, files := range packages(t) {
		for _, test := range leftOut(files) {
			seen++
			if !runs.without(dir, test) {
				t.Errorf("%s in %s is left out under the race detector, and build.sh runs it nowhere else", test, dir)
			}
		}
		for _, file := range files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && runs.nowhere(dir, f.Name.Name) {
					t.Errorf("%s in %s has the name of a test that runs without the race detector, and its folder is not run so", f.Name.Name, dir)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d tests are left out under the race detector: are its constants called otherwise now?", seen)
	}
}

// What is left out by itself and what calls such a function is found, and no more.
func TestLeftOutTestsAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", `package x
func needs(t *testing.T) { if raceEnabled { t.Skip("slow") } }
func TestOne(t *testing.T) { if testing.Short() || racing { t.Skipf("slow") } }
func TestTwo(t *testing.T) { needs(t) }
func TestThree(t *testing.T) { if raced { n = 3 } }
func TestFour(t *testing.T) { t.Skip("always") }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(leftOut([]*ast.File{file})); got != "[TestOne TestTwo]" {
		t.Errorf("found %s", got)
	}
	runs := readRuns(t)
	if runs.without("cmd/ganglion", "TestTwo") || !runs.without("plugins/js", "TestTwo") || !runs.without("plugins/host", "TestHeavyFilesAreBounded") {
		t.Errorf("what runs without the race detector is read wrongly: %+v", runs)
	}
	if !runs.nowhere("gpu/gl", "TestConformance") || runs.nowhere("gpu/gl", "TestTwo") || runs.nowhere("gpu/cpu", "TestConformance") || runs.nowhere("gpu/phase", "TestConformance") {
		t.Errorf("what runs nowhere is read wrongly: %+v", runs)
	}
}
