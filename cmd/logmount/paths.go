package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// dataPath returns the absolute path of a log directory, free of symbolic links as far as it exists: the lock, the mount table and other mounts of
// the same directory are compared by it.
func dataPath(arg string) (string, error) {
	if arg == "" {
		return "", errors.New("DATA is empty; give the path of a log directory")
	}
	abs, err := filepath.Abs(arg)
	if err != nil {
		return "", fmt.Errorf("%s: %w", arg, err)
	}
	if p, err := filepath.EvalSymlinks(abs); err == nil {
		return p, nil
	}
	dir := filepath.Dir(abs)
	if p, err := filepath.EvalSymlinks(dir); err == nil {
		dir = p
	}
	return filepath.Join(dir, filepath.Base(abs)), nil // whoever opens it says what is wrong with it
}

// within reports whether p lies below dir.
func within(p, dir string) bool {
	return strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// cacheDir is where what we compute about directories of others is kept; empty where there is no place for it.
func cacheDir() string {
	d, err := os.UserCacheDir()
	if err != nil {
		if os.Geteuid() != 0 {
			return ""
		}
		d = "/var/cache"
	}
	return filepath.Join(d, "logmount")
}
