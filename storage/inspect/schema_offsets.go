package inspect

// The fields of the records in __consumer_offsets, as a table for parseSchemas: the number and name of a type, the newest version of its value and the first
// that is flexible, and on the lines below it the fields. They are those of Kafka 4.4; older brokers have fewer of them.

// offsetsTable is of __consumer_offsets. A key begins with the number, a value with its version.
const offsetsTable = `
0 OffsetCommit 4 4
	key: group string; topic string; partition int32
	offset int64; leaderEpoch int32 3+; metadata string; commitTimestamp int64; expireTimestamp int64 1; topicId uuid 4+ @0
1 OffsetCommit 4 4
	key: group string; topic string; partition int32
	offset int64; leaderEpoch int32 3+; metadata string; commitTimestamp int64; expireTimestamp int64 1; topicId uuid 4+ @0
2 GroupMetadata 4 4
	key: group string
	protocolType string; generation int32; protocol string; leader string; currentStateTimestamp int64 2+; members []{memberId string; groupInstanceId
	string 3+; clientId string; clientHost string; rebalanceTimeout int32 1+; sessionTimeout int32; subscription subscription; assignment assignment}
3 ConsumerGroupMetadata 0 0
	key: groupId string
	epoch int32; metadataHash int64 @0
4 ConsumerGroupPartitionMetadata 0 0
	key: groupId string
	topics []{topicId uuid; topicName string; numPartitions int32; partitionMetadata []{partition int32; racks []string}}
5 ConsumerGroupMemberMetadata 0 0
	key: groupId string; memberId string
	instanceId string; rackId string; clientId string; clientHost string; subscribedTopicNames []string; subscribedTopicRegex string;
	rebalanceTimeoutMs int32; serverAssignor string; classicMemberMetadata ?{sessionTimeoutMs int32; supportedProtocols []{name string; metadata
	bytes}} @0
6 ConsumerGroupTargetAssignmentMetadata 0 0
	key: groupId string
	assignmentEpoch int32; assignmentTimestamp int64 @0
7 ConsumerGroupTargetAssignmentMember 0 0
	key: groupId string; memberId string
	topicPartitions []{topicId uuid; partitions []int32}
8 ConsumerGroupCurrentMemberAssignment 0 0
	key: groupId string; memberId string
	memberEpoch int32; previousMemberEpoch int32; state int8; assignedPartitions []{topicId uuid; partitions []int32; assignmentEpochs []int32 @0};
	partitionsPendingRevocation []{topicId uuid; partitions []int32; assignmentEpochs []int32 @0}
10 ShareGroupMemberMetadata 0 0
	key: groupId string; memberId string
	rackId string; clientId string; clientHost string; subscribedTopicNames []string
11 ShareGroupMetadata 0 0
	key: groupId string
	epoch int32; metadataHash int64
12 ShareGroupTargetAssignmentMetadata 0 0
	key: groupId string
	assignmentEpoch int32; assignmentTimestamp int64 @0
13 ShareGroupTargetAssignmentMember 0 0
	key: groupId string; memberId string
	topicPartitions []{topicId uuid; partitions []int32}
14 ShareGroupCurrentMemberAssignment 0 0
	key: groupId string; memberId string
	memberEpoch int32; previousMemberEpoch int32; state int8; assignedPartitions []{topicId uuid; partitions []int32}
15 ShareGroupStatePartitionMetadata 0 0
	key: groupId string
	initializingTopics []{topicId uuid; topicName string; partitions []int32}; initializedTopics []{topicId uuid; topicName string; partitions
	[]int32}; deletingTopics []{topicId uuid; topicName string}
16 ConsumerGroupRegularExpression 0 0
	key: groupId string; regularExpression string
	topics []string; version int64; timestamp int64
17 StreamsGroupMetadata 0 0
	key: groupId string
	epoch int32; metadataHash int64; validatedTopologyEpoch int32 @0; lastAssignmentConfigs []{key string; value string} @1;
	storedDescriptionTopologyEpoch int32 @2; failedDescriptionTopologyEpoch int32 @3
19 StreamsGroupMemberMetadata 0 0
	key: groupId string; memberId string
	instanceId string; rackId string; clientId string; clientHost string; rebalanceTimeoutMs int32; topologyEpoch int32; processId string; userEndpoint
	?{host string; port uint16}; clientTags []{key string; value string}
20 StreamsGroupTargetAssignmentMetadata 0 0
	key: groupId string
	assignmentEpoch int32; assignmentTimestamp int64 @0
21 StreamsGroupTargetAssignmentMember 0 0
	key: groupId string; memberId string
	activeTasks []{subtopologyId string; partitions []int32}; standbyTasks []{subtopologyId string; partitions []int32}; warmupTasks []{subtopologyId
	string; partitions []int32}
22 StreamsGroupCurrentMemberAssignment 0 0
	key: groupId string; memberId string
	memberEpoch int32; previousMemberEpoch int32; state int8; activeTasks []{subtopologyId string; partitions []int32; assignmentEpochs []int32 @0};
	standbyTasks []{subtopologyId string; partitions []int32; assignmentEpochs []int32 @0}; warmupTasks []{subtopologyId string; partitions []int32;
	assignmentEpochs []int32 @0}; activeTasksPendingRevocation []{subtopologyId string; partitions []int32; assignmentEpochs []int32 @0};
	standbyTasksPendingRevocation []{subtopologyId string; partitions []int32; assignmentEpochs []int32 @0}; warmupTasksPendingRevocation
	[]{subtopologyId string; partitions []int32; assignmentEpochs []int32 @0}
23 StreamsGroupTopology 0 0
	key: groupId string
	epoch int32; subtopologies []{subtopologyId string; sourceTopics []string; sourceTopicRegex []string; stateChangelogTopics []{name string;
	partitions int32; replicationFactor int16; topicConfigs []{key string; value string}}; repartitionSinkTopics []string; repartitionSourceTopics
	[]{name string; partitions int32; replicationFactor int16; topicConfigs []{key string; value string}}; copartitionGroups []{sourceTopics []int16;
	sourceTopicRegex []int16; repartitionSourceTopics []int16}}
`

// consumerTable is of what consumers put into the metadata of their group: 0 is a member's subscription, 1 its assignment. Both begin with a version.
const consumerTable = `
0 Subscription 3 -
	topics []string; userData bytes; ownedPartitions []{topic string; partitions []int32} 1+; generationId int32 2+; rackId string 3+
1 Assignment 3 -
	assignedPartitions []{topic string; partitions []int32}; userData bytes
`
