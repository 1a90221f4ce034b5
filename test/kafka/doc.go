// Package kafka tests the engine on directories that real Kafka brokers wrote, against what independent readers got from those brokers.
package kafka
