// Package broker starts real Apache Kafka brokers for tests and runs Kafka's own tools, so that they judge what logmount writes and reads.
//
// The jars are resolved once with Maven and kept in a cache. A node is one KRaft process on loopback; everything that was started ends with the test that
// started it, and what it said is shown where that test fails.
//
//	LOGMOUNT_KAFKA=1            run these tests: they take minutes
//	LOGMOUNT_REQUIRE_KAFKA=1    fail where Java, Maven, kcat or the jars are missing, instead of skipping
//	LOGMOUNT_KAFKA_VERSIONS     versions under test, separated by blanks
//	LOGMOUNT_KAFKA_CACHE        where the jars are kept; below the user's cache directory unless set
//	LOGMOUNT_PROGRAM            the program under test, by an absolute path that ends in /logmount; built from this tree unless set
package broker
