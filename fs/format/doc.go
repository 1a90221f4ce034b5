// Package format turns records into the bytes of a view and the bytes of a writer back into records.
//
// A format is a size function (Measure), an encoder (Append) and a splitter (Splitter). The package is pure: it reads no clock, touches no file and
// knows nothing of FUSE. How a batch is laid out is storage's business; here a batch is a length and the bytes that it covers.
//
// Invariants:
//
//	I1  len(f.Append(nil, r)) == f.Measure().Of(r) for every format that is not counted in batches.
//	I2  How a stream of bytes is cut into requests does not change the records that come out of it.
//	I3  A request that is refused leaves a Splitter as it was: same unfinished record, same answer to the next request.
//	I4  What a Splitter keeps is bounded by max.message.bytes, never by a number that a writer sent.
//	I5  JSON is lossless: a record read as JSON and written again has the same timestamp, key, value and headers.
package format
