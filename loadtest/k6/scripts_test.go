// Package k6_test plays the k6 scripts against a shop, and against shops that are wrong.
package k6_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"seckill/loadtest"
)

// Every script runs against a real shop and finds it to be right.
func TestScripts(t *testing.T) {
	url, data := openShop(t)
	for script, check := range map[string]func(r *result) bool{
		"sale":       func(r *result) bool { return r.Orders == 10 && r.count("place", "sold-out") > 0 },
		"duplicates": func(r *result) bool { return r.Orders == 10 && r.count("place", "placed") == 10 && r.Requests > 16*50 },
		"soldout":    func(r *result) bool { return r.Orders == 10 && r.count("place", "sold-out") > 0 },
		"lifecycle": func(r *result) bool {
			return r.count("pay", "done") > 0 && r.count("cancel", "done") > 0 && r.count("look", "done") > 0 && r.Orders >= 10
		},
		"soak": func(r *result) bool { return r.count("cancel", "done") > 10 && r.Orders > 10 },
	} {
		t.Run(script, func(t *testing.T) {
			r, status := play(t, script, "SECKILL_URL="+url, "SECKILL_DATA="+data, "ARRIVALS=100", "RATE=40", "USERS=50", "STOCK=10")
			if status != 0 || !r.OK || !check(&r) {
				t.Errorf("exit status %d, %+v", status, r)
			}
		})
	}
}

// The scripts play what the Go load generator plays under the same names.
func TestScenariosAgree(t *testing.T) {
	text, err := os.ReadFile("scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	type numbers struct {
		Stock, Users, Arrivals, Seconds int64
		Rate                            float64
		Copies                          int
		CopyShare                       float64
		PaySeconds                      int64
		PayShare, CancelShare           float64
	}
	var ours map[string]numbers
	if err := json.Unmarshal(text, &ours); err != nil {
		t.Fatal(err)
	}
	if len(ours) != len(loadtest.Scenarios) {
		t.Errorf("%d scenarios here, %d there", len(ours), len(loadtest.Scenarios))
	}
	for _, s := range loadtest.Scenarios {
		want := numbers{
			s.Stock, s.Users, s.Arrivals, int64(s.Duration / time.Second), s.Rate, s.Copies, s.CopyShare,
			s.PaySeconds, s.PayShare, s.CancelShare,
		}
		if want.Rate == 0 { // as fast as it goes, which k6 has no word for
			want.Rate = ours[s.Name].Rate
		}
		if got := ours[s.Name]; got != want {
			t.Errorf("%s: %+v; the load generator has %+v", s.Name, got, want)
		}
		if _, err := os.Stat(s.Name + ".js"); err != nil {
			t.Error(err)
		}
	}
}
