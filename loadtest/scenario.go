package loadtest

import (
	"fmt"
	"strings"
	"time"
)

// Scenario is a kind of load, under the same names as the k6 scripts.
type Scenario struct {
	Name string
	Text string // what it shows

	// What it takes, unless told otherwise.
	Stock      int64
	Users      int64
	Arrivals   int64         // 0: bounded by Duration
	Duration   time.Duration // 0: bounded by Arrivals
	Rate       float64       // arrivals per second; 0: as fast as Clients are served
	Copies     int
	CopyShare  float64
	PaySeconds int64

	// Of the orders placed, PayShare are paid and CancelShare are cancelled; both are looked up afterwards.
	PayShare, CancelShare float64
}

// Scenarios lists every scenario.
var Scenarios = []Scenario{
	{
		Name: "sale", Text: "many users for few units, a fifth of them impatient",
		Stock: 1000, Users: 20000, Arrivals: 20000, Copies: 3, CopyShare: 0.2, PaySeconds: 900,
	},
	{
		Name: "duplicates", Text: "few users who repeat themselves many times at once",
		Stock: 1000, Users: 50, Arrivals: 2000, Copies: 16, CopyShare: 1, PaySeconds: 900,
	},
	{
		Name: "soldout", Text: "refusals at full rate",
		Stock: 1, Users: 20000, Duration: 10 * time.Second, Copies: 1, PaySeconds: 900,
	},
	{
		Name: "lifecycle", Text: "place, pay or cancel, look up",
		Stock: 2000, Users: 5000, Arrivals: 5000, Copies: 1, PaySeconds: 900, PayShare: 0.5, CancelShare: 0.3,
	},
	{
		Name: "soak", Text: "everything at a steady rate for a long time; most orders are cancelled, so that the sale goes on",
		Stock: 2000, Users: 5000, Duration: 10 * time.Minute, Rate: 200, Copies: 2, CopyShare: 0.1, PaySeconds: 7200,
		PayShare: 0.02, CancelShare: 0.98,
	},
}

// ScenarioNamed returns the scenario of that name.
func ScenarioNamed(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(names, ", "))
}

// Act does one arrival of the scenario.
func (s *Scenario) Act(b *Buyers, a Arrival) {
	answer := b.Buy(a)
	if answer.Outcome != Placed || s.PayShare+s.CancelShare == 0 {
		return
	}
	user := b.Buyer(a.N)
	switch {
	case spread(a.N, s.PayShare):
		b.Pay(user, answer.Order)
	case spread(a.N, s.PayShare+s.CancelShare):
		b.Cancel(user, answer.Order)
	default:
		return
	}
	b.Look(user, answer.Order)
}

// spread chooses a share of all numbers, evenly and always the same. A larger share includes a smaller one.
func spread(n int64, share float64) bool {
	const step = 619 // shares no factor with 1000, so n·step mod 1000 takes every value equally often
	return float64(n*step%1000) < share*1000
}
