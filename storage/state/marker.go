package state

import (
	"encoding/json"
	"strconv"
)

// UnknownBrokerEpoch is the broker epoch in the marker of a directory that no broker had.
const UnknownBrokerEpoch int64 = -1

// FormatCleanMarker returns the bytes of the marker of a clean shutdown.
func FormatCleanMarker(brokerEpoch int64) []byte {
	b := append([]byte(nil), `{"version":0,"brokerEpoch":`...)
	b = strconv.AppendInt(b, brokerEpoch, 10)
	return append(b, '}')
}

// ParseCleanMarker returns the broker epoch in a marker. That the marker is there is what makes a shutdown clean: of one that is empty or makes no sense
// only the epoch is unknown.
func ParseCleanMarker(b []byte) (brokerEpoch int64) {
	var m struct {
		Version     *int   `json:"version"`
		BrokerEpoch *int64 `json:"brokerEpoch"`
	}
	if json.Unmarshal(b, &m) != nil || m.Version == nil || *m.Version != 0 || m.BrokerEpoch == nil {
		return UnknownBrokerEpoch
	}
	return *m.BrokerEpoch
}
