package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A service that a test makes says where seeds come from ([appliancetest.Seed], as a rule):
// with those of the system, a request without a seed ends otherwise once in a long while.

// drawing lists where a file makes a service, to use it, whose Config leaves Rand to the
// system.
func drawing(files *token.FileSet, file *ast.File) (places []string) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		set, unused := map[string]bool{}, map[ast.Expr]bool{}
		var made []*ast.CallExpr
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					set[types.ExprString(left)] = true
				}
				if types.ExprString(n.Lhs[0]) == "_" {
					unused[n.Rhs[0]] = true
				}
			case *ast.CallExpr:
				if types.ExprString(n.Fun) == "appliance.NewService" && !unused[n] {
					made = append(made, n)
				}
			}
			return true
		})
		for _, call := range made {
			if !setsRand(call.Args[0]) && !set[types.ExprString(call.Args[0])+".Rand"] {
				places = append(places, files.Position(call.Pos()).String())
			}
		}
	}
	return places
}

// setsRand tells whether a literal of a Config gives Rand.
func setsRand(config ast.Expr) bool {
	lit, ok := config.(*ast.CompositeLit)
	return ok && slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		return ok && types.ExprString(kv.Key) == "Rand"
	})
}

// eachTestFile parses every Go file of tests.
func eachTestFile(t *testing.T, do func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	read := 0
	for _, part := range []string{"appliance", "cmd", "gpu", "plugins", "storage", "web"} {
		err := filepath.WalkDir(filepath.Join("../..", part), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "node_modules", d.Name() == "testdata":
				return fs.SkipDir
			case !strings.HasSuffix(path, "_test.go"):
				return nil
			}
			read++
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err == nil {
				do(path, files, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 {
		t.Errorf("%d files were read: this test shows nothing", read)
	}
}

func TestServicesOfTestsDrawNoSeeds(t *testing.T) {
	eachTestFile(t, func(_ string, files *token.FileSet, file *ast.File) {
		for _, place := range drawing(files, file) {
			t.Errorf("%s: the service draws seeds: set Rand to appliancetest.Seed", place)
		}
	})
}

// The partner: a service that draws is noticed.
func TestServicesThatDrawAreNoticed(t *testing.T) {
	for body, want := range map[string]int{
		`s, err := appliance.NewService(appliance.Config{})`:                                        1,
		`s, err := appliance.NewService(appliance.Config{QueueMax: 3})`:                             1,
		`s, err := appliance.NewService(cfg)`:                                                       1,
		`other.Rand = seed; s, err := appliance.NewService(cfg)`:                                    1,
		`if s, err := appliance.NewService(b.cfg); err != nil { _ = s }`:                            1,
		`use(appliance.NewService(cfg))`:                                                            1,
		`run(func() { s, err := appliance.NewService(cfg); use(s, err) })`:                          1,
		`s, err := appliance.NewService(appliance.Config{QueueMax: 3, Rand: seed})`:                 0,
		`cfg.Rand = seed; s, err := appliance.NewService(cfg)`:                                      0,
		`if b.cfg.Rand == nil { b.cfg.Rand = seed }; b.s, b.err = appliance.NewService(b.cfg)`:      0,
		`_, err := appliance.NewService(appliance.Config{QueueMax: -1})`:                            0,
		`s, err := appliance.NewService(appliance.Config{}); r, err := appliance.NewService(a.cfg)`: 2,
	} {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, "x_test.go", "package x\nfunc f() {"+body+"}", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := drawing(files, file); len(got) != want {
			t.Errorf("%s: %q, want %d places", body, got, want)
		}
	}
}
