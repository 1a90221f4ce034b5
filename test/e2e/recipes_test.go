package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/logmount/logmount/test/fixture"
)

var recipeBlock = regexp.MustCompile("(?s)```(sh|text)\n(.*?)```")

// The blocks of these pages are run as they stand but for the directories, each page in one shell. A block of text is what the one before it prints.
func TestPagesRun(t *testing.T) {
	needMounts(t)
	for _, name := range []string{"recipes", "tools"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runPage(t, filepath.Join("..", "..", "docs", name+".md"))
		})
	}
}

func runPage(t *testing.T, path string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := workdirs(t)
	t.Cleanup(func() { clear(dir) })
	for _, d := range []string{"home", "srv", "mnt", "mnt/log"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean"), filepath.Join(dir, "srv", "kafka")); err != nil {
		t.Fatal(err)
	}
	const mark = "== a block ends"
	var script strings.Builder
	var want []string
	for _, m := range recipeBlock.FindAllSubmatch(page, -1) {
		if string(m[1]) == "text" {
			want[len(want)-1] = string(m[2])
			continue
		}
		script.Write(m[2])
		script.WriteString("echo '" + mark + "'\n")
		want = append(want, "")
	}
	places := strings.NewReplacer("/srv/", dir+"/srv/", "/mnt/", dir+"/mnt/")
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", places.Replace(script.String()))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir+"/home", "LC_ALL=C.UTF-8", "TZ=UTC")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s%s", err, out.String(), said.String())
	}
	got := strings.Split(strings.TrimSuffix(strings.ReplaceAll(out.String(), dir, ""), mark+"\n"), mark+"\n")
	if len(got) != len(want) {
		t.Fatalf("%d of %d blocks were run", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d prints\n%s, the page says\n%s", i+1, got[i], want[i])
		}
	}
}
