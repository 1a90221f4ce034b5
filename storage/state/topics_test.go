package state

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/logmount/logmount/storage"
)

const someID = "4WdnnuLgQ7OG9Bd2zp8EWg"

func TestTopics(t *testing.T) {
	c := NewTopics()
	c.Topics["orders"] = Topic{ID: someID, Partitions: 2, Config: map[string]string{"segment.ms": "1"}, Created: time.UnixMilli(1788026072512).UTC()}
	c.Deleting = []Deletion{{"gone-0", "gone-0.0123456789abcdef0123456789abcdef-delete"}}
	b, err := c.Format()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTopics(b)
	if err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v, want %+v", got, err, c)
	}
	d := c.Clone()
	delete(d.Topics, "orders")
	if len(c.Topics) != 1 {
		t.Error("a copy shares its topics")
	}
}

func TestParseTopics(t *testing.T) {
	for _, tt := range []struct {
		in  string
		err error
	}{
		{`{"version":1}`, nil},
		{`{"version":1,"topics":null}`, nil},
		{`{"version":1,"topics":{},"more":[]}`, nil},
		{`{}`, storage.ErrUnsupported},
		{`{"version":2,"topics":{}}`, storage.ErrUnsupported},
		{``, storage.ErrCorrupt},
		{`{"version":1,"topics":{}`, storage.ErrCorrupt},
		{`{"version":1,"topics":{"a":{"partitions":3000000000}}}`, storage.ErrCorrupt},
		{`{"version":1,"topics":{"a":{"created":"yesterday"}}}`, storage.ErrCorrupt},
	} {
		c, err := ParseTopics([]byte(tt.in))
		if !errors.Is(err, tt.err) || (err == nil) != (c != nil && c.Topics != nil) {
			t.Errorf("%s: got %+v, %v, want %v", tt.in, c, err, tt.err)
		}
	}
}

func TestCheckTopic(t *testing.T) {
	refuse := func(map[string]string) error { return storage.ErrInvalidConfig }
	for _, tt := range []struct {
		name   string
		topic  Topic
		config func(map[string]string) error
		ok     bool
	}{
		{"orders", Topic{ID: someID, Partitions: 1}, nil, true},
		{"orders", Topic{ID: someID, Partitions: MaxPartitions}, nil, true},
		{"orders", Topic{ID: someID, Partitions: MaxPartitions + 1}, nil, false},
		{"orders", Topic{ID: someID}, nil, false},
		{"orders", Topic{ID: "x", Partitions: 1}, nil, false},
		{"../etc", Topic{ID: someID, Partitions: 1}, nil, false},
		{"orders", Topic{ID: someID, Partitions: 1}, refuse, false},
	} {
		if err := tt.topic.Check(tt.name, tt.config); (err == nil) != tt.ok {
			t.Errorf("%s, %+v: got %v", tt.name, tt.topic, err)
		}
	}
}

func TestCheckDeletion(t *testing.T) {
	const as = "gone-0.0123456789abcdef0123456789abcdef-delete"
	for _, tt := range []struct {
		d  Deletion
		ok bool
	}{
		{Deletion{"gone-0", as}, true},
		{Deletion{as, as}, false},
		{Deletion{"gone-0", "gone-0"}, false},
		{Deletion{"../gone-0", as}, false},
		{Deletion{"gone-0", "/etc"}, false},
	} {
		if err := tt.d.Check(); (err == nil) != tt.ok {
			t.Errorf("%+v: got %v", tt.d, err)
		}
	}
}
