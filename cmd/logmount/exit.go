package main

import "strings"

// Exit statuses. Scripts rely on them.
const (
	exitOK     = 0 // done, and all is well
	exitDamage = 1 // done, and damage was found in the logs
	exitFailed = 2 // it could not be done
)

// exitError carries an exit status out of a verb. A nil err prints nothing: the verb has said what there was to say.
type exitError struct {
	code int
	err  error
}

// Error implements error.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap implements errors.Unwrap.
func (e *exitError) Unwrap() error { return e.err }

// oneLine makes one line of an error: scripts and people read the last line of stderr.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
