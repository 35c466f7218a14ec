package service

import "time"

// Instance is a process that serves the shop, as it was last heard of.
type Instance struct {
	Name   string        // unique among the instances of a shop
	Report []byte        // what it said about itself, in JSON
	Age    time.Duration // since it said so, by the database's clock
}
