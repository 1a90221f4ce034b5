package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Options say how a node is to be.
type Options struct {
	// Controller is the node whose controller to use; nil means that the node has its own.
	Controller *Node
	// User is who runs it; empty means whoever runs the test.
	User string
	// Settings are added to server.properties, "name=value".
	Settings []string
}

// Node is a KRaft node with its directories. Its process can be ended and started again.
type Node struct {
	// ID is node.id.
	ID int
	// Dir holds everything of the node.
	Dir string
	// Data is log.dirs: one directory.
	Data string
	// Addr is where clients reach it.
	Addr string

	kafka      *Kafka // jars that the node's user can read
	controller string
	cred       *syscall.Credential
	starts     int
	cmd        *exec.Cmd
	log        string
	ended      chan struct{} // closed once the process has been waited for
}

// cluster is the same for all clusters: they never meet.
const cluster = "cvGId247R6WFrFb7GrC5oQ"

// New makes the directories of a node and formats them. Start starts it.
func (k *Kafka) New(tb testing.TB, o Options) *Node {
	tb.Helper()
	dir := Dir(tb)
	n := &Node{ID: 1, Dir: dir, Data: filepath.Join(dir, "data"), kafka: k, Addr: fmt.Sprintf("127.0.0.1:%d", port(tb))}
	if err := os.Mkdir(n.Data, 0o755); err != nil {
		tb.Fatal(err)
	}
	roles, listeners := "broker", "PLAINTEXT://"+n.Addr
	if c := o.Controller; c != nil {
		n.ID, n.controller = c.ID+1, c.controller
	} else {
		roles, n.controller = "broker,controller", fmt.Sprintf("127.0.0.1:%d", port(tb))
		listeners += ",CONTROLLER://" + n.controller
	}
	settings := append([]string{
		"process.roles=" + roles,
		fmt.Sprintf("node.id=%d", n.ID),
		"controller.quorum.voters=1@" + n.controller,
		"listeners=" + listeners,
		"advertised.listeners=PLAINTEXT://" + n.Addr,
		"controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"inter.broker.listener.name=PLAINTEXT",
		"log.dirs=" + n.Data,
		"offsets.topic.replication.factor=1",
		"offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=1",
		"group.initial.rebalance.delay.ms=0",
		"log.initial.task.delay.ms=500",
		"log.retention.ms=-1",
	}, o.Settings...)
	if err := os.WriteFile(n.config(), []byte(strings.Join(settings, "\n")+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
	if o.User != "" {
		n.become(tb, o.User)
	}
	finish(tb, n.command(tb.Context(), "256m", "WARN", "kafka.tools.StorageTool", "format", "-t", cluster, "-c", n.config()), "")
	return n
}

func (n *Node) config() string { return filepath.Join(n.Dir, "server.properties") }

// become makes the node another user's, with jars that this user can read.
func (n *Node) become(tb testing.TB, name string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("NOT TESTED: only root can start a broker as another user")
	}
	u, err := user.Lookup(name)
	if err != nil {
		tb.Fatal(err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		tb.Fatal(err)
	}
	n.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	at := *n.kafka
	at.libs, at.logging = filepath.Join(n.Dir, "libs"), filepath.Join(n.Dir, "log4j.properties")
	if out, err := exec.CommandContext(tb.Context(), "cp", "-r", n.kafka.libs, n.kafka.logging, n.Dir).CombinedOutput(); err != nil {
		tb.Fatalf("copy jars: %v: %s", err, out)
	}
	n.kafka = &at
	for _, d := range []string{n.Dir, n.Data} {
		if err := os.Chown(d, int(uid), int(gid)); err != nil {
			tb.Fatal(err)
		}
	}
}

func (n *Node) command(ctx context.Context, heap, level, class string, args ...string) *exec.Cmd {
	cmd := n.kafka.command(ctx, n.kafka, heap, level, class, args)
	cmd.Dir = n.Dir
	cmd.SysProcAttr.Credential = n.cred
	return cmd
}

// Launch starts the process and does not wait until it answers.
func (n *Node) Launch(tb testing.TB) {
	tb.Helper()
	n.starts++
	n.log = filepath.Join(n.Dir, fmt.Sprintf("server.%d.log", n.starts))
	f, err := os.Create(n.log)
	if err != nil {
		tb.Fatal(err)
	}
	// Not the test's context: that ends before the test's cleanups, which may still need the broker.
	cmd := n.command(context.Background(), "512m", "INFO", "kafka.Kafka", n.config())
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended, name := make(chan struct{}), n.log
	n.cmd, n.ended = cmd, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
		_ = f.Close()
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if tb.Failed() {
			b, _ := os.ReadFile(name)
			tb.Logf("%s:\n%s", name, tail(serious(string(b)), 20))
		}
	})
}

// serious leaves out the lines of a log that are the everyday ones.
func serious(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		odd := strings.HasPrefix(line, "[") && !strings.Contains(line, "] INFO ") || strings.HasPrefix(line, "java.") || strings.HasPrefix(line, "org.")
		if odd || strings.Contains(line, "Recovering") || strings.Contains(line, "runcating") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Start starts the process and waits until it serves.
func (n *Node) Start(tb testing.TB) {
	tb.Helper()
	n.Launch(tb)
	Until(tb, "the broker answers", func() bool {
		if n.Ended() {
			tb.Fatalf("the broker ended at its start:\n%s", tail(n.Log(tb), 30))
		}
		if !strings.Contains(n.Log(tb), "Kafka Server started") {
			return false
		}
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(tb.Context(), "tcp", n.Addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

// Ended reports whether the process is gone.
func (n *Node) Ended() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// Wait waits until the process is gone.
func (n *Node) Wait(tb testing.TB) {
	tb.Helper()
	select {
	case <-n.ended:
	case <-time.After(patience):
		tb.Fatalf("the broker does not end:\n%s", tail(n.Log(tb), 30))
	}
}

// Terminate asks for an orderly stop and does not wait for it.
func (n *Node) Terminate(tb testing.TB) {
	tb.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Fatal(err)
	}
}

// Stop stops the process in an orderly way.
func (n *Node) Stop(tb testing.TB) {
	tb.Helper()
	n.Terminate(tb)
	n.Wait(tb)
}

// Kill ends the process at once: no clean-shutdown marker, preallocated indexes stay.
func (n *Node) Kill(tb testing.TB) {
	tb.Helper()
	if err := n.cmd.Process.Kill(); err != nil {
		tb.Fatal(err)
	}
	n.Wait(tb)
}

// Log is what the process has said since its last start.
func (n *Node) Log(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile(n.log)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// Topic makes a topic and waits until it has leaders. Settings are "name=value".
func (n *Node) Topic(tb testing.TB, name string, partitions, replicas int, settings ...string) {
	tb.Helper()
	n.kafka.Run(tb, "Load", append([]string{"topic", n.Addr, name, strconv.Itoa(partitions), strconv.Itoa(replicas)}, settings...)...)
}

// Assign makes a topic with one partition on the nodes with these ids; the first leads it.
func (n *Node) Assign(tb testing.TB, name string, ids ...string) {
	tb.Helper()
	n.kafka.Run(tb, "Load", append([]string{"assign", n.Addr, name}, ids...)...)
}
