// Package record is the codec of Kafka's record batches: the frame that all versions share, the 61-byte header and the records of version 2, the entries of
// versions 0 and 1, and the framings of the four compression codecs.
//
// It takes bytes and gives bytes; it does no I/O and reads no clock. Where a batch lies, whether its offsets follow those before it and what its
// timestamps mean for an index is for others to say.
//
// Layers, from cheap to thorough: ParseFrame needs 17 bytes, ParseHeader 61, CheckCRC the whole batch; Reader decodes records; Reader.Validate does all
// of these and is for batches that somebody else made. ParseLegacy stands in for ParseHeader with an entry of version 0 or 1; Reader, its Sums and CheckCRC
// take entries of all versions. Builder writes the batches of the append path, Encode any batch that the format can express.
//
// Invariants:
//
//	I1  No input makes a function of this package panic, save where its comment asks for a batch that has been checked before.
//	I2  A number read from the input sizes an allocation only up to a limit that follows from the length of the input (Reader.Limit).
//	I3  A Reader yields offsets that ascend and lie within the batch, or an error.
//	I4  A Reader and a Builder allocate nothing in the steady state.
//	I5  Every error is ErrCorrupt or ErrUnsupported of package storage.
//
// A Reader or a Builder is for one goroutine at a time; the functions may be called by many.
package record
