// Package locks compares the locks of this program with published ones, against the same server. The locks alternate within
// a run, so that a busy machine slows all of them down:
//
//	go test -bench . -benchtime 2000x -run '^$' .
//
// It is a separate module, so that the shop does not depend on its peers.
package locks
