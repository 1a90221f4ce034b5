package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/test/fixture"
)

func TestVerifyVerb(t *testing.T) {
	data := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	code, out, errs := runIn(t, "verify", data)
	if code != exitOK || errs != "" || !strings.Contains(out, "16 partitions, 20 segments, 1164 batches, 22268 records") || !strings.Contains(out, "no damage") {
		t.Fatalf("clean: %d %q %q", code, out, errs)
	}
	if code, out, _ := runIn(t, "verify", data, "codec-none", "segments-0", "-q"); code != exitOK || !strings.HasPrefix(out, data+": 2 partitions") {
		t.Errorf("two partitions: %d %q", code, out)
	}
	if code, _, errs := runIn(t, "verify", data, "nobody"); code != exitFailed || !strings.Contains(errs, "nobody: no such topic") {
		t.Errorf("unknown topic: %d %q", code, errs)
	}
	if code, out, _ := runIn(t, "verify", data, "codec-none", "--adopt"); code != exitDamage || !strings.Contains(out, "adopt-producer") {
		t.Errorf("adopt: %d %q", code, out)
	}

	log := filepath.Join(data, "codec-none-0", "00000000000000000000.log")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = runIn(t, "verify", data, "--json", "--jobs", "1")
	if code != exitDamage || errs != "" {
		t.Errorf("damaged: %d %q", code, errs)
	}
	var damage []inspect.Finding
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		var f inspect.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if f.Severity == inspect.Damage {
			damage = append(damage, f)
		}
	}
	if len(damage) != 1 || damage[0].What != inspect.BatchCRC || damage[0].Path != "codec-none-0/00000000000000000000.log" || damage[0].End == 0 || damage[0].Next <= 0 {
		t.Errorf("findings: %+v", damage)
	}
	var last struct {
		Summary  inspect.Summary
		Complete bool
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Summary.Damage != 1 || !last.Complete {
		t.Errorf("%v: %s", err, lines[len(lines)-1])
	}
	code, out, _ = runIn(t, "verify", data)
	if want := "damage batch-crc: " + log + " bytes 0 to "; code != exitDamage || !strings.Contains(out, want) || !strings.Contains(out, "1 findings of damage") {
		t.Errorf("%d, %q is not in %q", code, want, out)
	}
}

func TestVerifyVerbOfSeveralDirectories(t *testing.T) {
	a := filepath.Join(fixture.Unpack(t, "clean-4.4.0"), "clean")
	b := filepath.Join(fixture.Unpack(t, "killed-4.4.0"), "killed")
	code, out, errs := runIn(t, "verify", a+","+b, "-q")
	if code != exitOK || errs != "" || strings.Count(out, "no damage") != 2 {
		t.Errorf("both: %d %q %q", code, out, errs)
	}
	code, out, errs = runIn(t, "verify", a+","+b, "-q", "crashed-0")
	if code != exitOK || errs != "" || !strings.HasPrefix(out, b+": 1 partitions") || strings.Count(out, "\n") != 1 {
		t.Errorf("one partition: %d %q %q", code, out, errs)
	}
	if code, _, _ := runIn(t, "verify", a+","+b, "nobody"); code != exitFailed {
		t.Errorf("nobody: %d", code)
	}
}

func TestVerifyVerbThatCannot(t *testing.T) {
	empty := t.TempDir()
	if code, out, errs := runIn(t, "verify", empty); code != exitOK || errs != "" {
		t.Errorf("empty directory: %d %q %q", code, out, errs)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify"}, {"verify", filepath.Join(empty, "missing")}, {"verify", other}, {"verify", filepath.Join(other, "letter.txt")}} {
		if code, _, errs := runIn(t, args...); code != exitFailed || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
}
