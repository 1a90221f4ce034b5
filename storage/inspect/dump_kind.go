package inspect

import (
	"path/filepath"
	"strings"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/state"
)

// Names of files that package state has no use for.
const (
	quorumStateFile = "quorum-state"
	extCheckpoint   = ".checkpoint"
)

// fileKind is what a file holds. It is the field "type" of a heading, and what --type takes.
type fileKind string

// The kinds of files.
const (
	fileLog        fileKind = "log"
	fileIndex      fileKind = "index"
	fileTimeIndex  fileKind = "timeindex"
	fileTxnIndex   fileKind = "txnindex"
	fileSizeIndex  fileKind = "sizeindex"
	fileProducers  fileKind = "snapshot"
	fileOffsets    fileKind = "checkpoint"
	fileEpochs     fileKind = "epochs"
	fileMetadata   fileKind = "metadata"
	fileProperties fileKind = "properties"
	fileMarker     fileKind = "marker"
	fileCatalog    fileKind = "topics"
	fileJSON       fileKind = "json"
	fileUnknown    fileKind = ""
)

// FileKinds lists what Options.Type may be.
func FileKinds() []string {
	var list []string
	for _, k := range []fileKind{fileLog, fileIndex, fileTimeIndex, fileTxnIndex, fileSizeIndex, fileProducers, fileOffsets, fileEpochs, fileMetadata, fileProperties, fileMarker, fileCatalog, fileJSON} {
		list = append(list, string(k))
	}
	return list
}

// file is a file to be shown.
type file struct {
	path string
	kind fileKind
	base storage.Offset // of its segment; the end of a snapshot; -1 where its name does not tell
	size int64
}

// identify tells by its name what a file holds.
func identify(path string) file {
	name := filepath.Base(path)
	f := file{path: path, base: -1}
	switch name {
	case state.RecoveryPointFile, state.LogStartFile, state.HighWatermarkFile, state.CleanerOffsetFile:
		f.kind = fileOffsets
	case state.EpochsFile:
		f.kind = fileEpochs
	case state.MetadataFile:
		f.kind = fileMetadata
	case state.MetaPropertiesFile:
		f.kind = fileProperties
	case state.CleanMarkerFile:
		f.kind = fileMarker
	case state.TopicsFile:
		f.kind = fileCatalog
	case quorumStateFile:
		f.kind = fileJSON
	}
	if f.kind != fileUnknown {
		return f
	}
	if base, ext, _, ok := state.ParseFileName(name); ok {
		f.base, f.kind = base, kindOfExt(ext)
		return f
	}
	// A copy may have been given any name: its ending is enough, as it is for Kafka's tool. Snapshots of a metadata log are logs too.
	for _, s := range []string{state.SuffixDeleted, state.SuffixCleaned, state.SuffixSwap, state.SuffixTorn, ".part"} {
		name = strings.TrimSuffix(name, s)
	}
	f.kind = kindOfExt(filepath.Ext(name))
	return f
}

func kindOfExt(ext string) fileKind {
	switch ext {
	case state.ExtLog, extCheckpoint:
		return fileLog
	case state.ExtIndex:
		return fileIndex
	case state.ExtTimeIndex:
		return fileTimeIndex
	case state.ExtTxnIndex:
		return fileTxnIndex
	case state.ExtSizeIndex:
		return fileSizeIndex
	case state.ExtSnapshot:
		return fileProducers
	}
	return fileUnknown
}

// sibling returns the path of the segment's file with another extension, and with the same suffix as this one has.
func (f *file) sibling(ext string) string {
	dir, name := filepath.Split(f.path)
	stem, rest, _ := strings.Cut(name, ".")
	_, suffix, has := strings.Cut(rest, ".")
	if has {
		ext += "." + suffix
	}
	return dir + stem + ext
}

// topicOf returns the topic in whose directory the file lies, or "".
func topicOf(path string) string {
	d, err := state.ParseDirName(filepath.Base(filepath.Dir(path)))
	if err != nil {
		return ""
	}
	return d.Topic
}
