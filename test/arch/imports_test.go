package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/logmount/logmount"

// arrows says which packages of the module, and which libraries, a package of the product may import. A package of the module that is not here may import
// none of either; the standard library is free for all but where pure says otherwise.
var arrows = map[string][]string{
	"cmd/logmount":        {"fs", "storage", "storage/composite", "storage/inspect", "storage/local", "storage/repair", "storage/vfs", "github.com/schollz/progressbar/v3", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/sys/unix"},
	"fs":                  {"storage", "fs/format", "github.com/hanwen/go-fuse/v2/fuse", "golang.org/x/sys/unix"},
	"fs/format":           {"storage"},
	"storage":             {},
	"storage/vfs":         {"storage", "golang.org/x/sys/unix"},
	"storage/vfs/memfs":   {"storage/vfs"},
	"storage/vfs/faultfs": {"storage/vfs"},
	"storage/record":      {"storage", "github.com/klauspost/compress/...", "github.com/pierrec/lz4/v4/..."},
	"storage/index":       {"storage"},
	"storage/state":       {"storage", "storage/vfs", "github.com/google/uuid"},
	"storage/kraft":       {"storage", "storage/record"},
	"storage/segment":     {"storage", "storage/vfs", "storage/record", "storage/index", "storage/state"},
	"storage/partition":   {"storage", "storage/vfs", "storage/record", "storage/index", "storage/state", "storage/segment"},
	"storage/local":       {"storage", "storage/vfs", "storage/record", "storage/state", "storage/kraft", "storage/partition"},
	"storage/inspect":     {"storage", "storage/vfs", "storage/record", "storage/index", "storage/state"},
	"storage/repair":      {"storage", "storage/vfs", "storage/record", "storage/index", "storage/state", "storage/inspect"},
	"storage/composite":   {"storage"},
	"storage/storagetest": {"storage", "storage/record", "pgregory.net/rapid"},
}

// pure packages do no input or output of their own: bytes in, bytes out.
var pure = map[string][]string{
	"storage":        {"os", "syscall", "net"},
	"fs/format":      {"os", "syscall", "net", "time/tzdata"},
	"storage/record": {"os", "syscall", "net"},
	"storage/index":  {"os", "syscall", "net"},
	"storage/kraft":  {"os", "syscall", "net"},
}

// fuse is imported by one package of the product.
const fuse = "github.com/hanwen/go-fuse/v2"

type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Imports    []string
	GoFiles    []string
}

// packages lists the packages of the module, tests excluded.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports,GoFiles", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		var ee *exec.ExitError
		if errors.As(err, &ee) {
			t.Fatalf("go list: %s", ee.Stderr)
		}
		t.Fatal(err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// product reports whether a package is part of the product, as against its tests and scripts.
func product(rel string) bool {
	return !strings.HasPrefix(rel, "test/") && !strings.HasPrefix(rel, "scripts/")
}

func TestImportsFollowTheArrows(t *testing.T) {
	unused := map[string][]string{}
	for rel, list := range arrows {
		unused[rel] = slices.Clone(list)
	}
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		if !product(rel) || len(p.GoFiles) == 0 {
			continue
		}
		allowed, known := arrows[rel]
		if !known {
			t.Errorf("%s is not among the arrows: say what it may import", rel)
			continue
		}
		for _, imp := range p.Imports {
			inner := strings.TrimPrefix(imp, module+"/")
			if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
				if slices.Contains(pure[rel], imp) {
					t.Errorf("%s is pure and imports %s", rel, imp)
				}
				continue
			}
			if !matches(allowed, inner) {
				t.Errorf("%s imports %s; it may import %v", rel, inner, allowed)
			}
			unused[rel] = slices.DeleteFunc(unused[rel], func(a string) bool { return matches([]string{a}, inner) })
		}
	}
	for rel, list := range unused {
		if len(list) > 0 {
			t.Errorf("%s may import %v, and does not: take them out of the arrows", rel, list)
		}
	}
}

// matches reports whether an import is in a list, in which a/... stands for a and all below it.
func matches(list []string, imp string) bool {
	for _, l := range list {
		if base, ok := strings.CutSuffix(l, "/..."); ok && (imp == base || strings.HasPrefix(imp, base+"/")) || imp == l {
			return true
		}
	}
	return false
}

func TestOnePackageKnowsFUSE(t *testing.T) {
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, fuse) && rel != "fs" && product(rel) {
				t.Errorf("%s imports %s: only fs may", rel, imp)
			}
		}
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	for _, p := range packages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", rel)
		}
		if p.Name != "main" && p.Name != path.Base(rel) {
			t.Errorf("%s calls itself %s", rel, p.Name)
		}
	}
}
