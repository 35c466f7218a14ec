// Package locks compares the locks of this program with those that others publish, against the same server, and turn by
// turn in the same run, so that a busy machine is busy for all of them:
//
//	go test -bench . -benchtime 2000x -run '^$' .
//
// It is a module of its own, so that the shop does not depend on its peers.
package locks
