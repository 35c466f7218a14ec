package board

import "seckill/service"

// figure is one number of the board. Counters only grow; gauges are what they are at the moment.
type figure int

const (
	// Counters of requests to place an order, by answer.
	placed figure = iota
	replayed
	soldOut
	alreadyOrdered
	inProgress
	outside // before the start or after the end
	mistaken
	busy
	unavailable
	unknown

	// Counters of what stands behind them.
	commits   // batches
	committed // orders in them
	expired
	lockGranted
	lockHeld
	lockBypassed
	lockLost
	lockFailed
	sent    // events that the broker confirmed
	unsent  // attempts to send an event that are to be repeated
	givenUp // events that are not tried again

	counters // how many there are
)

const (
	// Times to answer requests of the last two seconds, in microseconds; -1 if there were none.
	p50 figure = iota + counters
	p90
	p99
	refusedP99

	queue // orders that wait for a batch

	// What the database said last, for the whole shop; -1 as long as it has not.
	stock // of the voucher that is in focus
	total
	outboxDepth
	outboxOldest // milliseconds
	outboxFailed

	// Ids: worker is -1 where ids are not snowflakes, idsLeft where they are.
	worker
	backup  // 1: the second worker of the pair is in use
	ahead   // milliseconds that ids are ahead of the clock
	lease   // seconds for which ids can be made without a renewal
	idsLeft // at hand, of a segment

	// 1 while it is so.
	lockOpen
	brokerAway
	databaseAway
	idsAway

	viewers

	figures // how many there are
)

var figureNames = [figures]string{
	placed: "placed", replayed: "replayed", soldOut: "sold_out", alreadyOrdered: "already_ordered", inProgress: "in_progress",
	outside: "outside", mistaken: "mistaken", busy: "busy", unavailable: "unavailable", unknown: "unknown",
	commits: "commits", committed: "committed", expired: "expired",
	lockGranted: "lock_granted", lockHeld: "lock_held", lockBypassed: "lock_bypassed", lockLost: "lock_lost", lockFailed: "lock_failed",
	sent: "sent", unsent: "unsent", givenUp: "given_up",
	p50: "p50", p90: "p90", p99: "p99", refusedP99: "refused_p99", queue: "queue",
	stock: "stock", total: "total", outboxDepth: "outbox", outboxOldest: "outbox_oldest", outboxFailed: "outbox_failed",
	worker: "worker", backup: "backup", ahead: "ahead", lease: "lease", idsLeft: "ids_left",
	lockOpen: "lock_open", brokerAway: "broker_away", databaseAway: "database_away", idsAway: "ids_away", viewers: "viewers",
}

// remembered are the figures that have a past: what a new viewer's curves begin with.
var remembered = [...]figure{
	placed, replayed, soldOut, alreadyOrdered, inProgress, outside, mistaken, busy, unavailable, unknown,
	commits, committed, lockGranted, lockHeld, lockBypassed, lockLost, lockFailed,
	p50, p90, p99, queue, stock, total, outboxDepth, outboxOldest, ahead,
}

// answerFigure is where an answer is counted.
func answerFigure(code service.Code) figure {
	switch code {
	case "":
		return placed
	case service.CodeReplayed:
		return replayed
	case service.CodeSoldOut:
		return soldOut
	case service.CodeAlreadyOrdered:
		return alreadyOrdered
	case service.CodeInProgress:
		return inProgress
	case service.CodeNotStarted, service.CodeEnded:
		return outside
	case service.CodeBusy:
		return busy
	case service.CodeUnavailable:
		return unavailable
	case service.CodeUnknown, service.CodeInternal:
		return unknown
	}
	return mistaken
}

// values are all figures at one moment.
type values [figures]int64
