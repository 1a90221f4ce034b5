package fs

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/logmount/logmount/fs/format"
	"github.com/logmount/logmount/storage"
)

// damageError is damage behind which a log goes on.
type damageError struct {
	error
	next storage.Offset // what can be read next
}

// Unwrap implements errors.Unwrap.
func (e *damageError) Unwrap() error { return e.error }

// damageLooks bounds how many damaged batches in a row are passed over to find one that can be read.
const damageLooks = 16

// goesOn adds to an error of cur where the log goes on behind it. The cursor is of no use afterwards.
func goesOn(ctx context.Context, cur storage.Cursor, f format.Format, err error) error {
	if !errors.Is(err, storage.ErrCorrupt) {
		return err
	}
	for range damageLooks {
		next, nerr := nextOffset(ctx, cur, f)
		switch {
		case nerr == nil:
			return &damageError{err, next}
		case !errors.Is(nerr, storage.ErrCorrupt) && !errors.Is(nerr, storage.ErrUnsupported):
			return err
		}
	}
	return err
}

// nextOffset returns the offset of what the cursor has next.
func nextOffset(ctx context.Context, cur storage.Cursor, f format.Format) (storage.Offset, error) {
	if f != format.Batch {
		r, err := cur.Next(ctx)
		if err != nil {
			return 0, err
		}
		return r.Offset, nil
	}
	b, err := cur.NextBatch(ctx)
	if err != nil {
		return 0, err
	}
	if len(b) < 8 {
		return 0, storage.ErrCorrupt
	}
	return storage.Offset(binary.BigEndian.Uint64(b)), nil
}
