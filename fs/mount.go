package fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/logmount/logmount/storage"
)

// maxRequest is the size of the largest READ and WRITE. Direct I/O wants large requests; twice this was measured to be no faster.
const maxRequest = 512 << 10

// maxBackground bounds the kernel's read-ahead requests and asynchronous I/O that are under way at once.
const maxBackground = 64

// MountOptions says where and how a tree is mounted.
type MountOptions struct {
	// Mountpoint is an existing, empty directory.
	Mountpoint string
	// AllowOther lets other users in, within the permissions of the files.
	AllowOther bool
	// FSName is shown as the mounted device; the engine's data if empty.
	FSName string
	// Flags are further options for the kernel, as mount(8) spells them: noexec, noatime, dev, suid and the like.
	Flags []string
	// Tree says how the tree looks.
	Tree Options
}

// Mounted is a mounted tree. It owns the goroutines that serve it.
type Mounted struct {
	tree       *Tree
	mountpoint string
	id         int // in mountinfo
	log        *slog.Logger
	served     chan struct{} // closed when the kernel has no more requests and all that were open are finished
	wg         sync.WaitGroup
}

// Mount shows engine at a mount point. When it returns, the mount answers. What stands in the way is one line that says what to do; nothing is left
// behind then. What a daemon that died left at the mount point is cleared away. The engine stays the caller's, who closes it after
// Quiesce: what is written by then is all there will be.
func Mount(ctx context.Context, engine storage.Engine, o MountOptions) (*Mounted, error) {
	info := engine.Info()
	if o.FSName == "" {
		o.FSName = info.Data
	}
	mountpoint, err := prepareMountpoint(ctx, o.Mountpoint, info.Dirs)
	if err != nil {
		return nil, err
	}
	o.Tree.Settings = withMountpoint(o.Tree.Settings, mountpoint)
	tree := NewTree(engine, o.Tree)
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	fd, err := mountFuse(mountpoint, o)
	if err != nil {
		return nil, err
	}
	server, err := fuse.NewServer(tree.Raw(), "/dev/fd/"+strconv.Itoa(fd), serverOptions(o, tree.log))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start serving %s: %w", mountpoint, err), unmountPath(ctx, mountpoint, true)) // the descriptor is closed by then
	}
	m := &Mounted{tree: tree, mountpoint: mountpoint, log: tree.log, served: make(chan struct{})}
	if infos, err := readMountInfo(); err == nil {
		if top := topMount(infos, mountpoint); top != nil && top.ours() {
			m.id = top.id
		}
	}
	m.serve(ctx, server)
	return m, nil
}

// serverOptions is how we talk to the kernel. READDIRPLUS would look every entry up. The kernel's automatic invalidation of its page cache stays on.
func serverOptions(o MountOptions, log *slog.Logger) *fuse.MountOptions {
	return &fuse.MountOptions{
		FsName:             o.FSName,
		Name:               mountName,
		MaxWrite:           maxRequest,
		MaxBackground:      maxBackground,
		DisableReadDirPlus: true,
		DisableXAttrs:      true,
		EnableLocks:        true,
		// Replies are never spliced from a file, and go-fuse would fill and empty a pipe for each READ before it sees that.
		DisableSplice: true,
		// Without the first `>` arrives as a truncation before the open; without the second no file that can grow could be mapped.
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_DIRECT_IO_ALLOW_MMAP,
		Logger:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// serve starts the goroutines. They end when the kernel lets go of the mount.
func (m *Mounted) serve(ctx context.Context, server *fuse.Server) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.wg.Go(func() { m.tree.runNotifier(ctx) })
	m.wg.Go(func() {
		defer close(m.served)
		defer stop()
		server.Serve()
		// An unmount may take a RELEASE with it that the kernel had queued: what was unfinished then is finished here.
		m.tree.Shutdown(ctx)
	})
}

// Mountpoint returns where it is mounted: an absolute path without symbolic links.
func (m *Mounted) Mountpoint() string { return m.mountpoint }

// Wait returns when the tree is no longer mounted, whoever unmounted it, and everything written to it is in the engine.
func (m *Mounted) Wait() { m.wg.Wait() }

// Done is closed when Wait would return without waiting.
func (m *Mounted) Done() <-chan struct{} { return m.served }

// Unmount unmounts a tree that nobody is using and waits until it is served no more. A *BusyError says who is using it.
func (m *Mounted) Unmount(ctx context.Context) error {
	return nameHolders(m.unmount(ctx))
}

// Quiesce refuses new opens and writes, ends followers and finishes unfinished lines. What is there can still be read through files that are open.
func (m *Mounted) Quiesce(ctx context.Context) { m.tree.Shutdown(ctx) }

// Detach takes the tree out of the name space, even if somebody has files of it open; those stay readable for as long as the engine and this process do.
func (m *Mounted) Detach(ctx context.Context) error {
	err := m.unmountSoon(ctx)
	if _, busy := errors.AsType[*BusyError](err); !busy {
		return err
	}
	m.log.Warn("detaching a busy mount", "mountpoint", m.mountpoint, "held_by", nameHolders(err).Error())
	if err = unmountPath(ctx, m.mountpoint, true); err == nil || m.ended() {
		return nil
	}
	return err
}

// Shutdown is Quiesce and Detach: the orderly end, which always ends.
func (m *Mounted) Shutdown(ctx context.Context) error {
	m.Quiesce(ctx)
	return m.Detach(ctx)
}

// unmountSoon unmounts, and gives those who have just been told to go a moment to do so.
func (m *Mounted) unmountSoon(ctx context.Context) error {
	const tries, pause = 10, 30 * time.Millisecond
	for try := 1; ; try++ {
		err := m.unmount(ctx)
		if _, busy := errors.AsType[*BusyError](err); !busy || try == tries {
			return err
		}
		select {
		case <-time.After(pause):
		case <-m.served:
		case <-ctx.Done():
			return err
		}
	}
}

// unmount is Unmount without the names of those who are in the way.
func (m *Mounted) unmount(ctx context.Context) error {
	there, err := m.there()
	if err != nil {
		return err
	}
	if !there {
		if m.ended() {
			return nil
		}
		return m.waitDetached(ctx)
	}
	if err := unmountPath(ctx, m.mountpoint, false); err != nil && !m.ended() {
		return err
	}
	return m.waitServed(ctx)
}

// there reports whether our mount is what the mount point shows. Somebody may have detached it, and even have mounted another tree there since.
func (m *Mounted) there() (bool, error) {
	if m.ended() {
		return false, nil
	}
	infos, err := readMountInfo()
	if err != nil {
		return false, err
	}
	if top := topMount(infos, m.mountpoint); top != nil && top.id == m.id {
		return true, nil
	}
	for i := range infos {
		if infos[i].id == m.id && infos[i].mountpoint == m.mountpoint {
			return false, fmt.Errorf("another mount lies on top of %s: unmount that first", m.mountpoint)
		}
	}
	return false, nil
}

// waitDetached gives the last requests of a mount that somebody else took away a moment; whoever still has a file open is not waited for.
func (m *Mounted) waitDetached(ctx context.Context) error {
	select {
	case <-m.served:
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
	return nil
}

func (m *Mounted) ended() bool {
	select {
	case <-m.served:
		return true
	default:
		return false
	}
}

func (m *Mounted) waitServed(ctx context.Context) error {
	select {
	case <-m.served:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is unmounted but still used: %w", m.mountpoint, context.Cause(ctx))
	}
}

func withMountpoint(settings map[string]string, mountpoint string) map[string]string {
	settings = maps.Clone(settings)
	if settings == nil {
		settings = make(map[string]string, 1)
	}
	settings["mountpoint"] = mountpoint
	return settings
}

// oneLine makes what another program printed fit into an error.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
