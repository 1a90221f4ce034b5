package segment

import (
	"github.com/logmount/logmount/storage"
	"github.com/logmount/logmount/storage/index"
	"github.com/logmount/logmount/storage/record"
)

// parseHeader reads the header of the batch, or entry of an older format, that starts at b. low is the smallest offset that may stand there.
//
// Of a compressed entry of format 0 or 1 only the last offset is known without decoding it, and no count (-1). It is taken to begin at low: nothing in it
// lies below, and nothing in front of it at or above. So what is behind low needs no decoding, and what looks for a record in between decodes.
func parseHeader(b []byte, low storage.Offset) (record.Header, error) {
	if len(b) >= record.FrameSize && (b[16] == 0 || b[16] == 1) {
		h, err := record.ParseLegacy(b)
		if n := h.BaseOffset - low; err == nil && h.Count < 0 && n > 0 && n <= index.MaxRelative {
			h.BaseOffset, h.LastOffsetDelta = low, int32(n)
		}
		return h, err
	}
	return record.ParseHeader(b)
}

// firstKnown returns the lowest offset that the batch is known to hold: its base, where that is not made up by parseHeader.
func firstKnown(h *record.Header) storage.Offset {
	if h.Count < 0 {
		return h.LastOffset()
	}
	return h.BaseOffset
}
