package loadtest

import (
	"fmt"
	"slices"
	"time"
)

// Scenario is a kind of load. The k6 scripts have the same names.
type Scenario struct {
	Name string
	Text string // one line of help

	// Defaults, which flags can change.
	Stock      int64
	Users      int64
	Arrivals   int64         // 0: limited by Duration
	Duration   time.Duration // 0: limited by Arrivals
	Rate       float64       // arrivals per second; 0: as fast as clients get answers
	Copies     int
	CopyShare  float64
	PaySeconds int64

	// The shares of placed orders that are paid and cancelled. Both kinds are read afterwards.
	PayShare, CancelShare float64
}

// Scenarios lists every scenario.
var Scenarios = []Scenario{
	{
		Name: "sale", Text: "many users for few units; a fifth of them send their request three times at once",
		Stock: 1000, Users: 20000, Arrivals: 20000, Copies: 3, CopyShare: 0.2, PaySeconds: 900,
	},
	{
		Name: "duplicates", Text: "few users, who send each request 16 times at once",
		Stock: 1000, Users: 50, Arrivals: 2000, Copies: 16, CopyShare: 1, PaySeconds: 900,
	},
	{
		Name: "soldout", Text: "one unit, so nearly all requests are refused",
		Stock: 1, Users: 20000, Duration: 10 * time.Second, Copies: 1, PaySeconds: 900,
	},
	{
		Name: "lifecycle", Text: "place, pay or cancel, and read orders",
		Stock: 2000, Users: 5000, Arrivals: 5000, Copies: 1, PaySeconds: 900, PayShare: 0.5, CancelShare: 0.3,
	},
	{
		Name: "soak", Text: "a steady rate for a long time; most orders are cancelled, so that the sale goes on",
		Stock: 2000, Users: 5000, Duration: 10 * time.Minute, Rate: 200, Copies: 2, CopyShare: 0.1, PaySeconds: 7200,
		PayShare: 0.02, CancelShare: 0.98,
	},
}

// ScenarioNamed returns a scenario by its name.
func ScenarioNamed(name string) (Scenario, error) {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return Scenario{}, fmt.Errorf("unknown scenario %q", name)
	}
	return Scenarios[i], nil
}

// Act is one arrival of the scenario.
func (s *Scenario) Act(b *Buyers, a Arrival) {
	answer := b.Buy(a)
	if answer.Outcome != Placed || s.PayShare+s.CancelShare == 0 {
		return
	}
	user := b.Buyer(a.N)
	switch {
	case inShare(a.N, s.PayShare):
		b.Pay(user, answer.Order)
	case inShare(a.N, s.PayShare+s.CancelShare):
		b.Cancel(user, answer.Order)
	default:
		return
	}
	b.Read(user, answer.Order)
}

// inShare reports whether n belongs to the share: always the same numbers, evenly spread. A larger share includes a smaller
// one.
func inShare(n int64, share float64) bool {
	const step = 619 // shares no factor with 1000, so n·step mod 1000 takes every value equally often
	return float64(n*step%1000) < share*1000
}
