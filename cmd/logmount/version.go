package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by a release build: -ldflags "-X main.version=v1.2.3".
var version string

// buildVersion returns the version alone: what the linker set, else the module's version, else "devel" and the revision.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	v := "devel"
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			v += "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			v += "+changes"
		}
	}
	return v
}

// versionString is what `logmount version` prints.
func versionString() string {
	return fmt.Sprintf("logmount %s (%s, %s/%s)", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
