# shellcheck shell=bash
# What the scripts share. Sourced, not run.

say() { printf '== %s\n' "$*" >&2; }

die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# as_root CMD... runs a command as root, with sudo where that is needed.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif have sudo; then
		sudo "$@"
	else
		die "this needs root, and there is no sudo; run as root: $*"
	fi
}

# install_packages NAME... installs packages with the package manager that is there, and says so.
install_packages() {
	if have apt-get; then
		say "installing $* with apt-get"
		as_root apt-get update -qq
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
	elif have dnf; then
		say "installing $* with dnf"
		as_root dnf install -y -q "$@" >&2
	elif have pacman; then
		say "installing $* with pacman"
		as_root pacman -Sy --noconfirm --needed "$@" >&2
	elif have apk; then
		say "installing $* with apk"
		as_root apk add --quiet "$@" >&2
	else
		die "please install $*: no package manager that this script knows (apt-get, dnf, pacman, apk) is here"
	fi
}

# need COMMAND PACKAGE... installs packages where a command is missing.
need() {
	local cmd=$1
	shift
	have "$cmd" || install_packages "$@"
	have "$cmd" || die "$cmd is still missing after installing $*"
}

# need_fuse makes sure that a mount is possible: fusermount3, and the device, which must be there and may be opened. It fails with a reason.
need_fuse() {
	need fusermount3 fuse3
	[ -e /dev/fuse ] || {
		say "/dev/fuse is missing; loading the kernel module"
		as_root modprobe fuse 2>/dev/null || true
	}
	[ -e /dev/fuse ] || {
		say "no /dev/fuse: in a container start it with --device /dev/fuse --cap-add SYS_ADMIN"
		return 1
	}
	{ : <>/dev/fuse; } 2>/dev/null || {
		say "/dev/fuse is there but $(id -un) cannot open it ($(ls -l /dev/fuse)): as root, chmod 666 /dev/fuse, or put the user into its group"
		say "in a container, start that with --device /dev/fuse"
		return 1
	}
}

# need_cc makes sure of a C compiler, which go test -race asks for.
need_cc() {
	have cc || have gcc || if have apt-get; then
		install_packages gcc libc6-dev
	elif have apk; then
		install_packages gcc musl-dev
	else
		install_packages gcc
	fi
}

# mounts lists the mountpoints of logmount.
mounts() { awk '{ for (i = 7; i < NF; i++) if ($i == "-") { if ($(i + 1) == "fuse.logmount") print $5; break } }' /proc/self/mountinfo | sort; }

# daemons lists the process ids of logmount.
daemons() {
	local d
	for d in /proc/[0-9]*; do
		# One that has ended and waits for whoever adopted it has no program any more.
		if [ "$(cat "$d/comm" 2>/dev/null)" = logmount ] && readlink "$d/exe" >/dev/null 2>&1; then printf '%s\n' "${d#/proc/}"; fi
	done | sort
}
