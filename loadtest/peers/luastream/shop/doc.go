// Package shop is the flash sale that is copied most: one Lua script in Redis checks the stock, remembers the buyer and
// appends the order to a stream, the buyer is answered at once, and a worker writes the stream to MySQL later. It is
// here to be measured against, so it is written as well as the pattern allows, and it answers over the same HTTP
// handler as the shop that it is compared with: routing, tokens, decoding and encoding are the same code, and what
// differs is what happens between the request and its answer.
//
// # The way of an order
//
//  1. place.lua, sent in pipelines that concurrent requests share: stock > 0 and the user not in the set of buyers →
//     DECR, SADD, XADD. The answer is 201.
//  2. A consumer group hands the stream to a writer, which inserts up to a thousand orders in one transaction together
//     with the update of the stock row, commits, and only then acknowledges and deletes the entries. What is delivered
//     twice changes nothing, because orders have their ids and a unique index.
//
// # What it is good at
//
// No buyer waits for a disk, and Redis alone decides: there is no hot row between the buyer and the answer. As long as
// Redis keeps what it was told, every acknowledged order reaches MySQL, each once, and nothing is oversold.
//
// # What can go wrong
//
// The answer says that Redis has the order, in memory. From there until the writer's commit, it is only there.
//
//   - Redis fails over after the answer: replication is asynchronous, so the replica that takes over may lack the last
//     orders, however often the master synced its file. Those were acknowledged and exist nowhere.
//   - Redis crashes without a replica. Without persistence, all that the writer has not committed is gone. With
//     appendfsync everysec, a crash of the machine loses the last second or two; a crash of the process alone loses
//     nothing that Redis has handed to the operating system, which it does before it answers, unless a sync is slow.
//   - The stock is counted twice, and a failover makes the two counters differ. Where Redis went back in time by orders
//     that MySQL has, it sells those units again; buyers get a 201 and the database refuses them later (Stats
//     calls these Refused). Where Redis took a unit and lost the order, nothing gives it back.
//   - Whoever reads an order right after the 201 may not find it: the backlog is as long as the sale is faster than the
//     writer.
//
// WAIT and appendfsync always narrow the first two at a cost in speed; neither makes the pair of stores one (Redis says
// of WAIT that it does not make it a strongly consistent store). The tests in lost_test.go show each of these, and also
// the crash that loses nothing.
package shop
