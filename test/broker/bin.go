package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Bin makes a directory of commands with the names that they have in a distribution of Kafka.
func (k *Kafka) Bin(tb testing.TB) string {
	tb.Helper()
	producer := "kafka.tools.ConsoleProducer"
	if k.AtLeast(4, 0) {
		producer = "org.apache.kafka.tools.ConsoleProducer"
	}
	dir := Dir(tb)
	for name, class := range map[string]string{
		"kafka-topics.sh":           "org.apache.kafka.tools.TopicCommand",
		"kafka-get-offsets.sh":      "org.apache.kafka.tools.GetOffsetShell",
		"kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
		"kafka-console-producer.sh": producer,
		"kafka-dump-log.sh":         k.Dump(),
	} {
		cmd := k.Command(tb.Context(), "256m", class)
		quoted := make([]string, len(cmd.Args))
		for i, a := range cmd.Args {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", strings.Join(quoted, " "))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}
