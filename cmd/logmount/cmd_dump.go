package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/inspect"
	"github.com/logmount/logmount/storage/vfs"
)

// dumpFlags are the flags of dump as they are typed.
type dumpFlags struct {
	asJSON, records           bool
	kind, decode              string
	from, to, timeFrom, until string
	pos                       string
}

func newDumpCmd() *cobra.Command {
	var f dumpFlags
	c := &cobra.Command{
		Use:   "dump FILE|DIR...",
		Short: "Show what is in the files of a log directory",
		Long: `Show what is in the files of a log directory: the batches of logs and of a metadata log's
snapshots, with --records the records in them too, the entries of indexes compared with the
log beside them, producer snapshots, checkpoints, leader epochs, and who owns the directory.

Names tell what is in a file; of a directory the files with such names are shown, and those
of the directories in it. A heading is followed by a line for each thing, of fields
"name: value" which have the names of Kafka's own dump tool. Records begin with "| ".

Damage does not stop it: a line tells where and what ("damage:", "gap:"), the next good batch
is searched for, and the exit status is 1. A line "note:" is no damage. What a broker at work, or
one that was killed, leaves at the end of its last segment is no damage either.

Records of Kafka's own topics (__consumer_offsets, __transaction_state, __cluster_metadata,
__share_group_state, __remote_log_metadata) are decoded; --decode does it for copies that lie
elsewhere, or leaves it.

--json prints one object a line. Its field "kind" is one of
  file        file, type, baseOffset (of a snapshot endOffset), size
  batch       baseOffset, lastOffset, count, baseSequence, lastSequence, producerId,
              producerEpoch, partitionLeaderEpoch, isTransactional, isControl,
              deleteHorizonMs, position, timestampType, maxTimestamp, size, magic,
              compresscodec, crc, isvalid; of formats 0 and 1, where one record is all
              there is, offset for the first three, and no producer
  record      offset, timestampType, timestamp, keySize, valueSize, sequence, headers,
              key, value (or key_base64, value_base64; decodedKey, decodedValue);
              of control records endTxnMarker, coordinatorEpoch; control, message
  gap         file, what (damaged, torn, zeros), position, size, damage, reason
  total       batches, records, damagedBytes
  index       offset, position
  timeindex   timestamp, offset
  txnindex    version, producerId, firstOffset, lastOffset, lastStableOffset
  sizes       the header of a .sizeindex; sizeindex: offset, position, and the records,
              keyBytes, valueBytes before it
  producer    producerId, producerEpoch, coordinatorEpoch, currentTxnFirstOffset,
              lastTimestamp, firstSequence, lastSequence, lastOffset, offsetDelta
  checkpoint  topic, partition, offset
  epoch       epoch, startOffset
  property    name, value
  topic       topic, settings
  line        line, text: of a text file that makes no sense
  damage      file, position, reason
  note        file, position, reason

Several may be given, also as a list with commas, like a broker's log.dirs. A file that a
repair took out of a log, *.quarantine, takes --type log.

It reads only, and may be used while a broker or a mount is at work in the directory.
Exit status: 0 no damage, 1 damage found, 2 a file could not be read.`,
		Example: `  logmount dump /srv/log/orders-0
  logmount dump --records --from 42 --to 50 /srv/log/orders-0/00000000000000000000.log
  logmount dump --json /srv/log | jq 'select(.kind == "damage")'
  logmount dump --records --time-from -1h /srv/log/__consumer_offsets-7`,
		Args: atLeastOne("file", "dump FILE|DIR... [--records] [--json]"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.options(c, time.Now())
			if err != nil {
				return err
			}
			res, err := inspect.Dump(c.Context(), vfs.OS(), c.OutOrStdout(), eachOf(args), o)
			switch {
			case err != nil:
				return err
			case res.Damage > 0:
				return &exitError{code: exitDamage}
			case res.Files == 0:
				return fmt.Errorf("%s: no file in it has a name that tells what is in it", args[0])
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object a line")
	fl.BoolVarP(&f.records, "records", "r", false, "show the records of batches too")
	fl.StringVar(&f.from, "from", "", "leave out what ends below this `OFFSET`")
	fl.StringVar(&f.to, "to", "", "leave out what starts at this `OFFSET` or above it")
	fl.StringVar(&f.timeFrom, "time-from", "", "leave out records and batches older than this `TIME`, spelt as under time/")
	fl.StringVar(&f.until, "time-to", "", "leave out records and batches of this `TIME` or later")
	fl.StringVar(&f.pos, "pos", "", "leave out batches that do not reach into these bytes of a log, `A..B` or A.. or ..B")
	fl.StringVar(&f.kind, "type", "", "what is in the files, whatever their names: "+strings.Join(inspect.FileKinds(), ", "))
	fl.StringVar(&f.decode, "decode", "", "how to decode keys and values, whatever the directory: "+strings.Join(inspect.Decoders(), ", "))
	completeFlag(c, "type", oneOf(inspect.FileKinds()...))
	completeFlag(c, "decode", oneOf(inspect.Decoders()...))
	return c
}

// options reads the flags.
func (f *dumpFlags) options(c *cobra.Command, now time.Time) (inspect.DumpOptions, error) {
	o := inspect.NewDumpOptions()
	o.JSON, o.Records, o.Type, o.Decode = f.asJSON, f.records, f.kind, f.decode
	if c.Flags().Changed("decode") && !slices.Contains(inspect.Decoders(), f.decode) {
		return o, fmt.Errorf("--decode %q: it can be %s", f.decode, strings.Join(inspect.Decoders(), ", "))
	}
	if c.Flags().Changed("type") && !slices.Contains(inspect.FileKinds(), f.kind) {
		return o, fmt.Errorf("--type %q: it can be %s", f.kind, strings.Join(inspect.FileKinds(), ", "))
	}
	for _, x := range []struct {
		flag, value string
		to          *storage.Offset
	}{{"from", f.from, &o.From}, {"to", f.to, &o.To}} {
		if !c.Flags().Changed(x.flag) {
			continue
		}
		n, err := storage.ParseOffset(x.value)
		if err != nil {
			return o, fmt.Errorf("--%s %q is not an offset: a decimal number", x.flag, x.value)
		}
		*x.to = n
	}
	if o.To < o.From {
		return o, fmt.Errorf("--from %d --to %d: the range ends before it begins", o.From, o.To)
	}
	for _, x := range []struct {
		flag, value string
		to          *int64
	}{{"time-from", f.timeFrom, &o.TimeFrom}, {"time-to", f.until, &o.TimeTo}} {
		if !c.Flags().Changed(x.flag) {
			continue
		}
		ms, err := parseTime(x.flag, x.value, now)
		if err != nil {
			return o, err
		}
		*x.to = ms
	}
	if o.TimeTo < o.TimeFrom {
		return o, fmt.Errorf("--time-from %s --time-to %s: the range ends before it begins", f.timeFrom, f.until)
	}
	if !c.Flags().Changed("pos") {
		return o, nil
	}
	return o, parsePositions(f.pos, &o)
}

// parsePositions reads A..B, where either may be missing.
func parsePositions(s string, o *inspect.DumpOptions) error {
	a, b, ok := strings.Cut(s, "..")
	if !ok || a == "" && b == "" {
		return fmt.Errorf("--pos %q is not a range of bytes A..B", s)
	}
	for _, x := range []struct {
		value string
		to    *storage.Pos
	}{{a, &o.PosFrom}, {b, &o.PosTo}} {
		if x.value == "" {
			continue
		}
		n, err := storage.ParseOffset(x.value)
		if err != nil {
			return fmt.Errorf("--pos %q is not a range of bytes A..B", s)
		}
		*x.to = storage.Pos(n)
	}
	if o.PosTo < o.PosFrom {
		return fmt.Errorf("--pos %q ends before it begins", s)
	}
	return nil
}
