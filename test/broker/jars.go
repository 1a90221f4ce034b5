package broker

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// defaultVersions are tested where LOGMOUNT_KAFKA_VERSIONS is not set: the newest release and the last that still has message formats 0 and 1.
const defaultVersions = "4.4.0 3.9.1"

// Kafka is a version of Kafka on this machine.
type Kafka struct {
	// Version is a release, such as 4.4.0.
	Version string

	libs    string // directory of the jars
	classes string // our own clients, compiled against them
	logging string // configuration of the logging library
}

// Wanted skips the test unless brokers are asked for.
func Wanted(tb testing.TB) {
	tb.Helper()
	if os.Getenv("LOGMOUNT_KAFKA") != "1" {
		tb.Skip("NOT TESTED: real brokers are started only with LOGMOUNT_KAFKA=1")
	}
}

// Versions lists the versions under test, the most important one first.
func Versions() []string {
	if v := strings.Fields(os.Getenv("LOGMOUNT_KAFKA_VERSIONS")); len(v) > 0 {
		return v
	}
	return strings.Fields(defaultVersions)
}

// lacking skips the test aloud, or fails it where brokers are required.
func lacking(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("LOGMOUNT_REQUIRE_KAFKA") == "1" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf("NOT TESTED: "+format, args...)
}

// Find resolves a version and compiles our clients for it, unless the cache has both.
func Find(tb testing.TB, version string) *Kafka {
	tb.Helper()
	Wanted(tb)
	for _, p := range []string{"java", "javac", "mvn", "kcat"} {
		if _, err := exec.LookPath(p); err != nil {
			lacking(tb, "there is no %s", p)
		}
	}
	dir, err := cache(version)
	if err != nil {
		tb.Fatal(err)
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		tb.Fatal(err)
	}
	defer unlock()
	k := &Kafka{Version: version, libs: filepath.Join(dir, "libs"), logging: filepath.Join(dir, "log4j.properties")}
	if err := k.resolve(tb.Context(), dir); err != nil {
		lacking(tb, "Kafka %s cannot be resolved: %v", version, err)
	}
	if err := k.compile(tb.Context(), dir); err != nil {
		tb.Fatal(err)
	}
	return k
}

// AtLeast reports whether the version is major.minor or newer.
func (k *Kafka) AtLeast(major, minor int) bool {
	var n [2]int
	for i, s := range strings.SplitN(k.Version, ".", 3) {
		if i < len(n) {
			n[i], _ = strconv.Atoi(s)
		}
	}
	return n[0] > major || n[0] == major && n[1] >= minor
}

func cache(version string) (string, error) {
	dir := os.Getenv("LOGMOUNT_KAFKA_CACHE")
	if dir == "" {
		c, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cache of Kafka: %w", err)
		}
		dir = filepath.Join(c, "logmount-kafka")
	}
	dir = filepath.Join(dir, version)
	return dir, os.MkdirAll(dir, 0o755)
}

// lock waits for its turn among processes that use the same cache.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() { _ = f.Close() }, nil
}

// project is what Maven is asked for: the broker, the tools, and a logging library that both kinds of release can use.
const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>logmount</groupId><artifactId>judges</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>%[1]s</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>%[1]s</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version></dependency>
</dependencies>
</project>
`

const logging = `log4j.rootLogger=${level}, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.Target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
`

func (k *Kafka) resolve(ctx context.Context, dir string) error {
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, fmt.Appendf(nil, project, k.Version), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(k.logging, []byte(logging), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DoutputDirectory="+k.libs)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn: %w: %s", err, tail(string(out), 5))
	}
	return os.WriteFile(done, nil, 0o644)
}

//go:embed testdata/Load.java
var clients string

func (k *Kafka) compile(ctx context.Context, dir string) error {
	sum := sha256.Sum256([]byte(clients))
	k.classes = filepath.Join(dir, "clients-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(filepath.Join(k.classes, "Load.class")); err == nil {
		return nil
	}
	src := filepath.Join(dir, "Load.java")
	if err := os.WriteFile(src, []byte(clients), 0o644); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "javac", "-nowarn", "-cp", k.libs+"/*", "-d", k.classes, src).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compile %s: %w: %s", src, err, out)
	}
	return nil
}

// tail returns the last n lines.
func tail(s string, n int) string {
	l := strings.SplitAfter(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(l[max(0, len(l)-n):], "")
}
