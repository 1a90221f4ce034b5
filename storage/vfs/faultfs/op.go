package faultfs

// Op is a kind of call.
type Op uint8

// The calls that are counted. Those of an FS come first, then those of a File; OpRelease is that of a Lock.
const (
	OpOpen Op = iota
	OpRemove
	OpRename
	OpMkdir
	OpReadDir
	OpStat
	OpSyncDir
	OpChown
	OpChmod
	OpLock
	OpUsage
	OpRead
	OpWrite
	OpSync
	OpTruncate
	OpFstat
	OpRelease
	opEnd
)

var opNames = [opEnd]string{
	"open", "remove", "rename", "mkdir", "readdir", "stat", "syncdir", "chown", "chmod", "lock", "usage", "read", "write", "sync", "truncate", "fstat", "release",
}

// String returns the name that Log uses.
func (o Op) String() string {
	if o >= opEnd {
		return "unknown"
	}
	return opNames[o]
}
