package repository

import (
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
)

func TestInstances_ReportToEachOther(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		s := NewInstances(openDB(t, target))
		for _, r := range []struct{ name, report string }{{"one", `{"n": 1}`}, {"two", `{"n": 2}`}, {"one", `{"n": 3}`}} {
			if _, err := s.Report(t.Context(), r.name, []byte(r.report)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Report(t.Context(), "one", []byte("not JSON")); err == nil && target.Engine != dbtest.SQLite {
			t.Error("a report that is not JSON was stored")
		}
		heard, err := s.Report(t.Context(), "two", []byte(`{"n": 4}`))
		if err != nil || len(heard) != 2 || heard[0].Name != "one" || string(heard[1].Report) != `{"n": 4}` {
			t.Fatalf("%+v %v", heard, err)
		}
		if age := heard[1].Age; age < 0 || age > 20*time.Second {
			t.Errorf("a report of this moment is %s old", age)
		}

		// The report of a dead instance is returned with its age, and left out after an hour.
		silence := func(d time.Duration) {
			if err := s.db.session(t.Context()).Exec("UPDATE instance SET seen_at = " + s.db.dialect.nowPlus(-d) + " WHERE name = 'one'").Error; err != nil {
				t.Fatal(err)
			}
		}
		silence(time.Minute)
		if heard, err = s.Report(t.Context(), "two", []byte(`{}`)); err != nil || len(heard) != 2 || heard[0].Age < time.Minute {
			t.Errorf("%+v %v", heard, err)
		}
		silence(2 * time.Hour)
		if heard, err = s.Report(t.Context(), "two", []byte(`{}`)); err != nil || len(heard) != 1 || heard[0].Name != "two" {
			t.Errorf("%+v %v", heard, err)
		}
		if err := s.Leave(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := s.db.session(t.Context()).Raw("SELECT COUNT(*) FROM instance").Scan(&left).Error; err != nil || left != 0 {
			t.Errorf("%d rows are left, %v", left, err)
		}
	})
}
