package inspect

// The fields of the records in __cluster_metadata, as a table for parseSchemas: the number and name of a type, the newest version of its value and the first
// that is flexible, and on the lines below it the fields. They are those of Kafka 4.4; older brokers have fewer of them.

// metadataTable is of __cluster_metadata, whose records have no keys: a value begins with the version of the frame, the number and the version.
const metadataTable = `
0 RegisterBroker 4 0
	brokerId int32; isMigratingZkBroker bool 2+; incarnationId uuid; brokerEpoch int64; endPoints []{name string; host string; port uint16;
	securityProtocol int16}; features []{name string; minSupportedVersion int16; maxSupportedVersion int16}; rack string; fenced bool;
	inControlledShutdown bool 1+; logDirs []uuid 3+ @0; cordonedLogDirs []uuid 4+ @1
1 UnregisterBroker 0 0
	brokerId int32; brokerEpoch int64
2 Topic 0 0
	name string; topicId uuid
3 Partition 2 0
	partitionId int32; topicId uuid; replicas []int32; isr []int32; removingReplicas []int32; addingReplicas []int32; leader int32; leaderRecoveryState
	int8 @0; leaderEpoch int32; partitionEpoch int32; directories []uuid 1+; eligibleLeaderReplicas []int32 2+ @1; lastKnownElr []int32 2+ @2
4 Config 0 0
	resourceType int8; resourceName string; name string; value string
5 PartitionChange 2 0
	partitionId int32; topicId uuid; isr []int32 @0; leader int32 @1; replicas []int32 @2; removingReplicas []int32 @3; addingReplicas []int32 @4;
	leaderRecoveryState int8 @5; directories []uuid 1+ @8; eligibleLeaderReplicas []int32 2+ @6; lastKnownElr []int32 2+ @7
7 FenceBroker 0 0
	id int32; epoch int64
8 UnfenceBroker 0 0
	id int32; epoch int64
9 RemoveTopic 0 0
	topicId uuid
10 DelegationToken 0 0
	owner string; requester string; renewers []string; issueTimestamp int64; maxTimestamp int64; expirationTimestamp int64; tokenId string
11 UserScramCredential 0 0
	name string; mechanism int8; salt bytes; storedKey bytes; serverKey bytes; iterations int32
12 FeatureLevel 0 0
	name string; featureLevel int16
14 ClientQuota 0 0
	entity []{entityType string; entityName string}; key string; value float64; remove bool
15 ProducerIds 0 0
	brokerId int32; brokerEpoch int64; nextProducerId int64
17 BrokerRegistrationChange 3 0
	brokerId int32; brokerEpoch int64; fenced int8 @0; inControlledShutdown int8 1+ @1; logDirs []uuid 2+ @2; cordonedLogDirs []uuid 3+ @3
18 AccessControlEntry 0 0
	id uuid; resourceType int8; resourceName string; patternType int8; principal string; host string; operation int8; permissionType int8
19 RemoveAccessControlEntry 0 0
	id uuid
20 NoOp 0 0
21 ZkMigrationState 0 0
	zkMigrationState int8
22 RemoveUserScramCredential 0 0
	name string; mechanism int8
23 BeginTransaction 0 0
	name string @0
24 EndTransaction 0 0
25 AbortTransaction 0 0
	reason string @0
26 RemoveDelegationToken 0 0
	tokenId string
27 RegisterController 0 0
	controllerId int32; incarnationId uuid; zkMigrationReady bool; endPoints []{name string; host string; port uint16; securityProtocol int16};
	features []{name string; minSupportedVersion int16; maxSupportedVersion int16}
28 ClearElr 0 0
	topicName string
29 UnregisterController 0 0
	controllerId int32
`
