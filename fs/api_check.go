package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// What is what, to be read as a list.
var (
	_ fuse.RawFileSystem = (*rawFS)(nil)

	_ dirNode = (*rootNode)(nil)
	_ dirNode = (*topicNode)(nil)
	_ dirNode = (*partitionNode)(nil)
	_ dirNode = (*offsetDir)(nil)
	_ dirNode = (*timeDir)(nil)
	_ dirNode = (*recordDir)(nil)
	_ dirNode = (*segmentsDir)(nil)
	_ dirNode = (*controlDir)(nil)

	_ fileNode = (*viewNode)(nil)
	_ fileNode = (*recordNode)(nil)
	_ fileNode = (*followNode)(nil)
	_ fileNode = (*topicTail)(nil)
	_ fileNode = (*segmentNode)(nil)
	_ fileNode = (*valueNode)(nil)

	_ reader = (*readHandle)(nil)
	_ reader = (*followHandle)(nil)
	_ reader = (*segmentHandle)(nil)
	_ reader = (*valueHandle)(nil)
	_ reader = (*bothHandle)(nil)

	_ writer = (*writeHandle)(nil)
	_ writer = (*bothHandle)(nil)
	_ writer = (*startHandle)(nil)

	_ truncater = (*writeHandle)(nil)
	_ truncater = (*bothHandle)(nil)

	_ batchReader = (*readHandle)(nil)
	_ batchReader = (*bothHandle)(nil)
	_ batchWriter = (*writeHandle)(nil)
	_ batchWriter = (*bothHandle)(nil)
)
