//go:build race

package repair

const raceEnabled = true
