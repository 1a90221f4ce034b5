package record

import "strconv"

// Codec is the compression of a batch's records.
type Codec int8

// The codecs, by their numbers on disk.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String returns the name that Kafka's compression.type has for the codec.
func (c Codec) String() string {
	if c.known() {
		return codecNames[c]
	}
	return "codec " + strconv.Itoa(int(c))
}

func (c Codec) known() bool { return c >= None && c <= Zstd }

// Attributes are the flags of a batch.
type Attributes int16

// Bits of Attributes. The lowest three hold the codec.
const (
	AttrLogAppendTime Attributes = 1 << 3
	AttrTransactional Attributes = 1 << 4
	AttrControl       Attributes = 1 << 5
	AttrDeleteHorizon Attributes = 1 << 6

	attrCodec Attributes = 7
)

// Codec returns the compression; numbers above Zstd are of no known codec.
func (a Attributes) Codec() Codec { return Codec(a & attrCodec) }

// LogAppendTime reports that all records have the batch's MaxTimestamp as their timestamp.
func (a Attributes) LogAppendTime() bool { return a&AttrLogAppendTime != 0 }

// Transactional reports that the batch belongs to a transaction of its producer.
func (a Attributes) Transactional() bool { return a&AttrTransactional != 0 }

// Control reports that the batch holds control records, which are not shown to consumers.
func (a Attributes) Control() bool { return a&AttrControl != 0 }

// HasDeleteHorizon reports that BaseTimestamp is the time at which tombstones of the batch may go; timestamps still count from it.
func (a Attributes) HasDeleteHorizon() bool { return a&AttrDeleteHorizon != 0 }

// WithCodec returns a with its codec replaced.
func (a Attributes) WithCodec(c Codec) Attributes { return a&^attrCodec | Attributes(c)&attrCodec }
