package inspect

import (
	"path/filepath"
	"strings"
	"sync"

	"github.com/logmount/logmount/storage/state"
)

// The decoders, as --decode names them, and the topics that are theirs.
const (
	decodeNone         = "none"
	decodeOffsets      = "offsets"
	decodeTransactions = "transactions"
	decodeMetadata     = "metadata"
	decodeShare        = "share"
	decodeRemote       = "remote"

	topicOffsets      = "__consumer_offsets"
	topicTransactions = "__transaction_state"
	topicShare        = "__share_group_state"
	topicRemote       = "__remote_log_metadata"
)

// Decoders lists what DumpOptions.Decode may be.
func Decoders() []string {
	return []string{decodeOffsets, decodeTransactions, decodeMetadata, decodeShare, decodeRemote, decodeNone}
}

// tables are the schemas of Kafka's own topics.
type tables struct {
	offsets, transactions, metadata, share, remote, control, consumer map[int32]*schema
	err                                                               error // what is wrong with them; tests look
}

var schemas = sync.OnceValue(func() (t tables) {
	for _, x := range []struct {
		to    *map[int32]*schema
		table string
	}{
		{&t.offsets, offsetsTable}, {&t.transactions, transactionsTable}, {&t.metadata, metadataTable},
		{&t.share, shareTable}, {&t.remote, remoteTable}, {&t.control, controlTable}, {&t.consumer, consumerTable},
	} {
		m, err := parseSchemas(x.table)
		if err != nil {
			t.err = err
		}
		*x.to = m
	}
	return t
})

// decoder returns what decodes the records of the present file, or nil.
func (d *dumper) decoder() decoder {
	name := d.o.Decode
	if name == "" {
		switch topicOf(d.cur.path) {
		case topicOffsets:
			name = decodeOffsets
		case topicTransactions:
			name = decodeTransactions
		case state.MetadataTopic:
			name = decodeMetadata
		case topicShare:
			name = decodeShare
		case topicRemote:
			name = decodeRemote
		default:
			if strings.Contains(filepath.Base(d.cur.path), extCheckpoint) {
				name = decodeMetadata // a snapshot that was copied, or the one that a directory is formatted with
			}
		}
	}
	t := schemas()
	switch name {
	case decodeOffsets:
		return keyed(t.offsets)
	case decodeTransactions:
		return keyed(t.transactions)
	case decodeShare:
		return keyed(t.share)
	case decodeMetadata:
		return unkeyed(t.metadata, true)
	case decodeRemote:
		return unkeyed(t.remote, false)
	}
	return nil
}
