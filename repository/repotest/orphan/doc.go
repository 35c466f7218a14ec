// Package orphan keeps the servers of tests from outliving them.
package orphan
