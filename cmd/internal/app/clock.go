//go:build !seckill_clock

package app

import "seckill/service/idgen"

// idClock is the clock that the ids of orders take the time of day from.
func idClock() idgen.Clock { return idgen.SystemClock() }
