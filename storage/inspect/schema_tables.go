package inspect

// The fields of the records in Kafka's own topics, as a table for parseSchemas: the number and name of a type, the newest version of its value and the first
// that is flexible, and on the lines below it the fields. They are those of Kafka 4.4; older brokers have fewer of them.

// transactionsTable is of __transaction_state.
const transactionsTable = `
0 TransactionState 1 1
	key: transactionalId string
	producerId int64; previousProducerId int64 1+ @0; nextProducerId int64 1+ @1; producerEpoch int16; nextProducerEpoch int16 1+ @3;
	transactionTimeoutMs int32; transactionStatus int8; transactionPartitions []{topic string; partitionIds []int32}; transactionLastUpdateTimestampMs
	int64; transactionStartTimestampMs int64; clientTransactionVersion int16 1+ @2
`

// shareTable is of __share_group_state.
const shareTable = `
0 ShareSnapshot 0 0
	key: groupId string; topicId uuid; partition int32
	snapshotEpoch int32; stateEpoch int32; leaderEpoch int32; startOffset int64; deliveryCompleteCount int32 @0; createTimestamp int64; writeTimestamp
	int64; stateBatches []{firstOffset int64; lastOffset int64; deliveryState int8; deliveryCount int16}
1 ShareUpdate 0 0
	key: groupId string; topicId uuid; partition int32
	snapshotEpoch int32; leaderEpoch int32; startOffset int64; deliveryCompleteCount int32 @0; stateBatches []{firstOffset int64; lastOffset int64;
	deliveryState int8; deliveryCount int16}
`

// remoteTable is of __remote_log_metadata, whose records have no keys: a value begins with the number and the version.
const remoteTable = `
0 RemoteLogSegmentMetadata 0 0
	remoteLogSegmentId {topicIdPartition {name string; id uuid; partition int32}; id uuid}; startOffset int64; endOffset int64; brokerId int32;
	maxTimestampMs int64; eventTimestampMs int64; segmentLeaderEpochs []{leaderEpoch int32; offset int64}; segmentSizeInBytes int32; customMetadata
	bytes; remoteLogSegmentState int8; txnIndexEmpty bool @0
1 RemoteLogSegmentMetadataUpdate 0 0
	remoteLogSegmentId {topicIdPartition {name string; id uuid; partition int32}; id uuid}; brokerId int32; eventTimestampMs int64; customMetadata
	bytes; remoteLogSegmentState int8
2 RemotePartitionDeleteMetadata 0 0
	topicIdPartition {name string; id uuid; partition int32}; brokerId int32; eventTimestampMs int64; remotePartitionDeleteState int8
3 RemoteLogSegmentMetadataSnapshot 0 0
	segmentId uuid; startOffset int64; endOffset int64; brokerId int32; maxTimestampMs int64; eventTimestampMs int64; segmentLeaderEpochs
	[]{leaderEpoch int32; offset int64}; segmentSizeInBytes int32; customMetadata bytes; remoteLogSegmentState int8; txnIndexEmpty bool @0
`

// controlTable is of the control records of a metadata log, by the number of their type. Their first field is the version.
const controlTable = `
2 LeaderChange 1 0
	version int16; leaderId int32; voters []{voterId int32; voterDirectoryId uuid 1+}; grantingVoters []{voterId int32; voterDirectoryId uuid 1+}
3 SnapshotHeader 0 0
	version int16; lastContainedLogTimestamp int64
4 SnapshotFooter 0 0
	version int16
5 KRaftVersion 0 0
	version int16; kRaftVersion int16
6 KRaftVoters 0 0
	version int16; voters []{voterId int32; voterDirectoryId uuid; endpoints []{name string; host string; port uint16}; kRaftVersionFeature
	{minSupportedVersion int16; maxSupportedVersion int16}}
`
