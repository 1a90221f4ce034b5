package broker

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait. It says that something hangs, not that it is slow.
const patience = 90 * time.Second

// jvm keeps a short program short: no second compiler, no threads for collecting garbage.
var jvm = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss512k"}

// Dump is the class of kafka-dump-log.
func (k *Kafka) Dump() string {
	if k.AtLeast(4, 3) {
		return "org.apache.kafka.tools.DumpLogSegments"
	}
	return "kafka.tools.DumpLogSegments"
}

// Command prepares a Java program of this version. The process is killed when ctx ends, and when this process dies.
func (k *Kafka) Command(ctx context.Context, heap, class string, args ...string) *exec.Cmd {
	return k.command(ctx, k, heap, "WARN", class, args)
}

func (k *Kafka) command(ctx context.Context, at *Kafka, heap, level, class string, args []string) *exec.Cmd {
	all := append([]string{}, jvm...)
	all = append(all, "-Xmx"+heap, "-Dlevel="+level, "-Dlog4j.configuration=file:"+at.logging, "-cp", at.classes+":"+at.libs+"/*", class)
	cmd := exec.CommandContext(ctx, "java", append(all, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Run runs a Java program to its end and returns its standard output. What it fails with fails the test.
func (k *Kafka) Run(tb testing.TB, class string, args ...string) string {
	tb.Helper()
	return k.RunInput(tb, "", class, args...)
}

// RunInput is Run with something on standard input.
func (k *Kafka) RunInput(tb testing.TB, input, class string, args ...string) string {
	tb.Helper()
	return finish(tb, k.Command(tb.Context(), "512m", class, args...), input)
}

// Kcat runs kcat to its end and returns its standard output.
func Kcat(tb testing.TB, input string, args ...string) string {
	tb.Helper()
	return finish(tb, exec.CommandContext(tb.Context(), "kcat", args...), input)
}

// finish runs a command to its end.
func finish(tb testing.TB, cmd *exec.Cmd, input string) string {
	tb.Helper()
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &said
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%s: %v\n%s\n%s", short(cmd), err, tail(said.String(), 30), tail(out.String(), 10))
	}
	return out.String()
}

// short is a command line without Java's own options.
func short(cmd *exec.Cmd) string {
	a := cmd.Args
	for i, s := range a {
		if s == "-cp" && i+2 < len(a) {
			return strings.Join(a[i+2:], " ")
		}
	}
	return strings.Join(a, " ")
}

// Until waits until done is true.
func Until(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("waited in vain: %s", what)
		}
	}
}
