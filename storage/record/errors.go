package record

import (
	"fmt"

	"github.com/logmount/logmount/storage"
)

// What can be wrong with the bytes of a batch. Each is storage.ErrCorrupt too. Versions and codecs that are not known are storage.ErrUnsupported instead.
var (
	// ErrTruncated: the bytes end before what they announce.
	ErrTruncated = fmt.Errorf("%w: truncated", storage.ErrCorrupt)
	// ErrZero: there are zeros where a batch should start, as in a preallocated file.
	ErrZero = fmt.Errorf("%w: zeros", storage.ErrCorrupt)
	// ErrCRC: the checksum does not match.
	ErrCRC = fmt.Errorf("%w: checksum mismatch", storage.ErrCorrupt)
	// ErrMalformed: a field has a value that it cannot have.
	ErrMalformed = fmt.Errorf("%w: malformed", storage.ErrCorrupt)
	// ErrTooLarge: decoding would take more memory than the limit allows.
	ErrTooLarge = fmt.Errorf("%w: decoded size above the limit", storage.ErrCorrupt)
)
