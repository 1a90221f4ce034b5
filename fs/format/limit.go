package format

import (
	"fmt"
	"math/bits"

	"github.com/logmount/logmount/storage"
)

// jsonSlack is the room of a JSON line beyond its escaped strings: names of fields, white space.
const jsonSlack = 64 << 10

// checkLen returns ErrTooLarge if n bytes of one record, the delimiter not counted, are more than can ever be stored. It refuses no record that storage
// would take: storage has the last word about a complete one.
func (s *Splitter) checkLen(n int) error {
	least := n
	switch s.format {
	case JSON:
		// Every byte of a string may be written in six.
		if int64(n) > 6*int64(s.max)+jsonSlack {
			return fmt.Errorf("%w: a json line of more than %d bytes, max.message.bytes is %d", storage.ErrTooLarge, 6*int64(s.max)+jsonSlack, s.max)
		}
		return nil
	case KV:
		least-- // the TAB
	case Lines, NUL, Batch, Whole:
	}
	if ownBatch(int64(least)) > int64(s.max) {
		return fmt.Errorf("%w: at least %d bytes in a batch of its own, max.message.bytes is %d", storage.ErrTooLarge, ownBatch(int64(least)), s.max)
	}
	return nil
}

// ownBatch returns the size of an uncompressed batch that holds one record with n bytes of value, no key and no headers.
func ownBatch(n int64) int64 {
	const header, fixed = 61, 1 + 1 + 1 + 1 + 1 // attributes, two deltas of 0, null key, no headers
	body := fixed + varintLen(n) + n
	return header + varintLen(body) + body
}

// varintLen returns the length of n >= 0 as a zigzag varint.
func varintLen(n int64) int64 {
	return int64(bits.Len64(uint64(n)<<1|1)+6) / 7
}
