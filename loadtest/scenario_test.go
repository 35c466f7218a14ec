package loadtest

import (
	"net/http"
	"testing"
	"time"
)

func buyersOf(client *Client, c *collector) *Buyers {
	return &Buyers{
		Client: client, Recorder: NewRecorder(c.add), Voucher: "7", FirstUser: 100, Users: 1000, Copies: 3, CopyShare: 1, Name: NewName(),
	}
}

func TestBuyers_CopiesShareKeyAndOrder(t *testing.T) {
	shop, journal := newFakeShop(5), &collector{}
	buyers := buyersOf(shop.start(t), journal)
	load := Load{Clients: 4, Arrivals: 20}
	if err := load.Run(t.Context(), func(a Arrival) { buyers.Buy(a) }, nil); err != nil {
		t.Fatal(err)
	}
	report := buyers.Recorder.Report()
	if shop.requests != 60 || report.Requests != 60 {
		t.Errorf("%d requests sent, %d reported; want 60", shop.requests, report.Requests)
	}
	if placed, replayed, soldOut := report.Count(OpPlace, Placed), report.Count(OpPlace, Replayed), report.Count(OpPlace, "sold-out"); placed != 5 || replayed != 10 || soldOut != 45 {
		t.Errorf("placed %d, replayed %d, sold out %d; want 5, 10, 45", placed, replayed, soldOut)
	}
	if report.Accepted.Count != 15 || report.Refused.Count != 45 || report.Accepted.P50 <= 0 {
		t.Errorf("accepted %+v, refused %+v", report.Accepted, report.Refused)
	}
	keys := map[int64]map[string]int{}
	for _, e := range journal.entries {
		if keys[e.User] == nil {
			keys[e.User] = map[string]int{}
		}
		keys[e.User][e.Key]++
	}
	if len(keys) != 20 {
		t.Errorf("%d users came; want 20", len(keys))
	}
	for user, sent := range keys {
		for key, n := range sent {
			if n != 3 || len(sent) != 1 {
				t.Errorf("user %d sent key %q %d times, and %d keys", user, key, n, len(sent))
			}
		}
	}
}

// The latency of every copy includes the time that the arrival waited for a client.
func TestBuyers_LatencyFromDue(t *testing.T) {
	shop := newFakeShop(1)
	buyers := buyersOf(shop.start(t), &collector{})
	buyers.Buy(Arrival{Due: time.Now().Add(-time.Second)})
	buyers.Buy(Arrival{N: 1}) // of the closed model
	r := buyers.Recorder.Report()
	if r.Accepted.P50 < time.Second || r.Accepted.Count != 3 {
		t.Errorf("accepted within %s", r.Accepted.P50)
	}
	if r.Refused.Max >= time.Second {
		t.Errorf("refused within %s", r.Refused.Max)
	}
}

func TestBuyers_CopyShare(t *testing.T) {
	for _, share := range []float64{0, 0.1, 0.25, 1} {
		b := Buyers{Copies: 3, CopyShare: share}
		n := 0
		for i := range int64(1000) {
			if b.copies(i) == 3 {
				n++
			}
		}
		if n != int(1000*share) {
			t.Errorf("share %v: %d of 1000 send copies", share, n)
		}
	}
}

func TestBuyers_RepeatedUserHasNewKey(t *testing.T) {
	b := Buyers{FirstUser: 10, Users: 3, Name: "n"}
	if b.Buyer(0) != 10 || b.Buyer(2) != 12 || b.Buyer(3) != 10 || b.Key(0) == b.Key(3) {
		t.Errorf("users %d %d %d, keys %q %q", b.Buyer(0), b.Buyer(2), b.Buyer(3), b.Key(0), b.Key(3))
	}
	b.IDs = []int64{7, 9}
	if b.Buyer(0) != 7 || b.Buyer(3) != 9 {
		t.Errorf("of users 7 and 9, %d and %d came", b.Buyer(0), b.Buyer(3))
	}
	if b.NoKeys = true; b.Key(1) != "" {
		t.Errorf("a key although there shall be none: %q", b.Key(1))
	}
}

// Some requests are lost, and for others the answer is lost after the order was placed. Settle must resolve all of them, and
// the clients must know as many orders as were placed.
func TestSettle_ResolvesEveryRequest(t *testing.T) {
	for _, noKeys := range []bool{false, true} {
		shop, journal := newFakeShop(30), &collector{}
		healed := false
		shop.fault = func(n int, w http.ResponseWriter) bool { return !healed && n%6 == 0 && hangUp(w) }
		shop.after = func(n int, w http.ResponseWriter) bool { return !healed && n%6 == 3 && hangUp(w) }
		buyers := buyersOf(shop.start(t), journal)
		buyers.Copies, buyers.NoKeys = 1, noKeys
		load := Load{Clients: 4, Arrivals: 60}
		if err := load.Run(t.Context(), func(a Arrival) { buyers.Buy(a) }, nil); err != nil {
			t.Fatal(err)
		}
		unknown := buyers.Recorder.TakeUnknown()
		report := buyers.Recorder.Report()
		if broken := report.Count(OpPlace, Broken); len(unknown) != int(broken) || broken < 15 {
			t.Errorf("%d unknown outcomes, %d broken connections of 60 requests", len(unknown), broken)
		}
		shop.mu.Lock()
		healed = true
		shop.mu.Unlock()
		settled := Settle(t.Context(), buyers.Client, NewRecorder(journal.add), unknown)
		if settled.Unknown != int64(len(unknown)) || settled.Open != 0 || settled.Settled != settled.Unknown {
			t.Errorf("no keys %v: settled %+v of %d", noKeys, settled, len(unknown))
		}
		known := map[string]bool{}
		for _, e := range journal.entries {
			if e.Outcome.Class() == Accepted && e.Order != "" {
				known[e.Order] = true
			}
		}
		if len(known) != 30-shop.stock || len(shop.live) != len(known) {
			t.Errorf("no keys %v: clients know of %d orders, the shop of %d", noKeys, len(known), len(shop.live))
		}
	}
}

func TestSettle_EndsWithContext(t *testing.T) {
	shop := newFakeShop(1)
	shop.fault = func(_ int, w http.ResponseWriter) bool { refuse(w, 503, "busy"); return true }
	client, journal := shop.start(t), &collector{}
	ctx, cancel := contextWithTimeout(t, 200*time.Millisecond)
	defer cancel()
	settled := Settle(ctx, client, NewRecorder(journal.add), []Entry{{User: 1, Voucher: "7", Key: "a"}, {User: 1, Voucher: "7", Key: "a"}, {User: 2, Voucher: "7", Key: "b"}})
	if settled != (Settled{Unknown: 2, Settled: 0, Open: 2}) {
		t.Errorf("%+v", settled)
	}
	if len(journal.entries) < 4 {
		t.Errorf("only %d tries", len(journal.entries))
	}
}

func TestScenarios(t *testing.T) {
	for _, s := range Scenarios {
		shop, journal := newFakeShop(int(min(s.Stock, 50))), &collector{}
		buyers := buyersOf(shop.start(t), journal)
		buyers.Users, buyers.Copies, buyers.CopyShare = s.Users, s.Copies, s.CopyShare
		load := Load{Clients: 8, Arrivals: 100}
		if err := load.Run(t.Context(), func(a Arrival) { s.Act(buyers, a) }, nil); err != nil {
			t.Fatal(err)
		}
		r := buyers.Recorder.Report()
		owners, cancelled := map[string]int64{}, map[string]bool{}
		for _, e := range journal.entries {
			switch {
			case e.Op == OpCancel && e.Outcome == Done:
				cancelled[e.Order] = true
			case e.Op == OpPlace && e.Outcome.Class() == Accepted:
				if owner, known := owners[e.Order]; known && owner != e.User {
					t.Errorf("%s: order %s was answered to users %d and %d", s.Name, e.Order, owner, e.User)
				}
				owners[e.Order] = e.User
			}
		}
		if failed := r.CountClass(OpPlace, Failed); failed != 0 {
			t.Errorf("%s: %d failed", s.Name, failed)
		}
		if live := len(owners) - len(cancelled); live != len(shop.live) || len(cancelled) != len(shop.closed) {
			t.Errorf("%s: clients own %d live and %d closed orders, the shop has %d and %d", s.Name, live, len(cancelled), len(shop.live), len(shop.closed))
		}
		if changes := s.PayShare + s.CancelShare; (r.Count(OpRead, Done) > 0) != (changes > 0) {
			t.Errorf("%s: %d orders read", s.Name, r.Count(OpRead, Done))
		}
		if (r.Count(OpCancel, Done) > 0) != (s.CancelShare > 0) {
			t.Errorf("%s: %d orders cancelled", s.Name, r.Count(OpCancel, Done))
		}
	}
	if _, err := ScenarioNamed("no such"); err == nil {
		t.Error("a scenario that does not exist")
	}
}
