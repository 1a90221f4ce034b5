package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root returns the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// files lists the text files of the repository with one of the endings, by paths from its root.
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a work tree of git: %v", err)
	}
	var list []string
	for f := range strings.SplitSeq(string(out), "\x00") {
		for _, e := range endings {
			if !strings.HasSuffix(f, e) || strings.Contains(f, "/testdata/") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root(t), f)); err == nil {
				list = append(list, f)
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("no files %v", endings)
	}
	return list
}

// productFiles lists the Go files of the product, without tests.
func productFiles(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, f := range files(t, ".go") {
		if product(f) && !strings.HasSuffix(f, "_test.go") {
			list = append(list, f)
		}
	}
	return list
}

func parse(t *testing.T, f string) (*token.FileSet, *ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, filepath.Join(root(t), f), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return fset, tree
}

// forbidden are selectors that a part of the product may not use, and why.
var forbidden = map[string]struct{ below, why string }{
	"ENOSYS":     {"", "the kernel remembers it for the life of the mount: one stray ENOSYS from fsync and every later fsync succeeds without being asked for"},
	"ToErrno":    {"", "go-fuse's guess at an errno; ours is classify"},
	"ENOTSUP":    {"fs/", "callers fall back in ways that write zeros"},
	"EOPNOTSUPP": {"fs/", "callers fall back in ways that write zeros"},
}

func TestErrnosThatTheKernelRemembers(t *testing.T) {
	for _, file := range productFiles(t) {
		fset, tree := parse(t, file)
		ast.Inspect(tree, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && file == "fs/raw_refuse.go" && f.Name.Name == "Statx" {
				return false // to be asked with GETATTR instead, for the life of the mount, is what it wants
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				if f, bad := forbidden[s.Sel.Name]; bad && strings.HasPrefix(file, f.below) {
					t.Errorf("%s uses %s: %s", where(fset, s, file), s.Sel.Name, f.why)
				}
			}
			return true
		})
	}
}

func TestNobodyPrintsOrExits(t *testing.T) {
	for _, f := range productFiles(t) {
		fset, tree := parse(t, f)
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := s.X.(*ast.Ident)
			if x == nil {
				return true
			}
			switch name := x.Name + "." + s.Sel.Name; {
			case strings.HasPrefix(name, "fmt.Print"), strings.HasPrefix(name, "log.Fatal"), strings.HasPrefix(name, "log.Panic"):
				t.Errorf("%s calls %s: a writer or a logger is handed in", where(fset, call, f), name)
			case name == "os.Exit" && f != "cmd/logmount/main.go":
				t.Errorf("%s calls os.Exit: return an error", where(fset, call, f))
			}
			return true
		})
	}
}

func where(fset *token.FileSet, n ast.Node, f string) string {
	return fmt.Sprintf("%s:%d", f, fset.Position(n.Pos()).Line)
}

// The rules of the linter are about directories that are there: a rule for another forbids nothing.
func TestLinterKnowsTheDirectories(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\*\*/([a-z/]+)/\*|storage/[a-z/]+`).FindAllStringSubmatch(string(b), -1)
	if len(named) == 0 {
		t.Error("no directory is named")
	}
	for _, m := range named {
		dir := m[1]
		if dir == "" {
			dir = m[0]
		}
		if info, err := os.Stat(filepath.Join(root(t), strings.TrimSuffix(dir, "/"))); err != nil || !info.IsDir() {
			t.Errorf("%s is no directory", dir)
		}
	}
}

// longest is how many lines a Go file may have; a longer one has a seam somewhere.
const longest = 600

func TestFilesHaveOneJob(t *testing.T) {
	for _, f := range files(t, ".go") {
		b, err := os.ReadFile(filepath.Join(root(t), f))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n > longest {
			t.Errorf("%s has %d lines; at most %d", f, n, longest)
		}
	}
}

// leftover finds words that stand for work not done. The pattern is put together so that this file does not match it.
var leftover = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}, "|") + `)\b`)

func TestNothingIsLeftForLater(t *testing.T) {
	for _, f := range files(t, ".go", ".md", ".sh", ".txtar", "scripts/test", "scripts/lint", "scripts/quickstart", ".ci/run") {
		b, err := os.ReadFile(filepath.Join(root(t), f))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			if leftover.MatchString(line) {
				t.Errorf("%s:%d: %s", f, i+1, strings.TrimSpace(line))
			}
		}
	}
}
