// Package ids compares the id generators of service/idgen with others on the same machine, in the same run:
//
//	go test -bench . -cpu 1,2 ./...
//
// It is a separate module, so that the shop does not depend on its peers.
package ids
