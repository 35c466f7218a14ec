package ids

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/ids/redisids"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

// slow delays every load, so that it dominates what other work of the machine costs.
type slow struct {
	idgen.RangeStore
	took time.Duration
}

func (s slow) Allocate(ctx context.Context, n int64) (idgen.Range, error) {
	time.Sleep(s.took)
	return s.RangeStore.Allocate(ctx, n)
}

// openFloor accepts every range.
type openFloor struct{}

func (openFloor) Floor(context.Context) (int64, int64, error)       { return 0, 1, nil }
func (openFloor) Claim(context.Context, int64, int64) (bool, error) { return true, nil }

func TestRefill(t *testing.T) {
	client := redistest.Start(t).Client()
	result, err := Refill(t.Context(), RefillConfig{
		Incr:   func(ctx context.Context) error { return client.Incr(ctx, "one").Err() },
		Ranges: slow{redisids.New(client, "many", openFloor{}), 20 * time.Millisecond},
		Rate:   2000, Step: 400, Time: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Runs) != 3 {
		t.Fatalf("%d runs, want 3", len(result.Runs))
	}
	incr, single, double := result.Runs[0], result.Runs[1], result.Runs[2]
	if single.Waits == 0 || double.Waits != 0 {
		t.Errorf("%d waits with one buffer and %d with two, want some and none", single.Waits, double.Waits)
	}
	if single.Overall.Max < 10_000 {
		t.Errorf("slowest call with one buffer %g µs, want it to show the 20 ms of a load", single.Overall.Max)
	}
	if double.Throughput < 10*incr.Throughput {
		t.Errorf("%g ids/s with buffers, %g without: want ten times as many at least", double.Throughput, incr.Throughput)
	}
	calls := 0
	for _, p := range single.Series {
		calls += p.Calls
	}
	if calls != single.Overall.Calls || calls < 3900 {
		t.Errorf("the series has %d calls, the run %d, want 4000", calls, single.Overall.Calls)
	}
}

func TestStep(t *testing.T) {
	result, err := Step(t.Context(), StepConfig{
		Ranges: &idgentest.Ranges{}, Low: 500, Phase: time.Second, Target: 100 * time.Millisecond, Every: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	dynamic, small, large := result.Runs[0], result.Runs[1], result.Runs[2]
	if dynamic.Loads >= small.Loads/2 {
		t.Errorf("%d loads with a dynamic step, %d with a small one: want far fewer", dynamic.Loads, small.Loads)
	}
	if dynamic.Quiet >= large.Quiet/2 {
		t.Errorf("a restart wastes %d ids with a dynamic step, %d with a large one: want far fewer", dynamic.Quiet, large.Quiet)
	}
	if n := len(dynamic.Series); n != 60 {
		t.Errorf("%d samples, want 60", n)
	}
}

func TestKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		config, err := mysql.ParseDSN(target.DSN)
		if err != nil {
			t.Fatal(err)
		}
		config.InterpolateParams = true
		connector, err := mysql.NewConnector(config)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		g, err := idgen.NewSnowflake(t.Context(), idgen.NewStatic(0))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close(context.Background())
		result, err := Keys(t.Context(), KeysConfig{DB: db, Snowflake: g, Rows: 40_000})
		if err != nil {
			t.Fatal(err)
		}
		byKey := map[string]KeyRun{}
		for _, run := range result.Runs {
			t.Logf("%+v", run)
			byKey[run.Key] = run
		}
		// The ends of the range: sizes grow by a megabyte, which blurs what lies between for so few rows.
		flake, text := byKey["snowflake"], byKey["uuid v4, char(36)"]
		if len(byKey) != 6 || flake.Splits == 0 || text.Splits <= flake.Splits {
			t.Errorf("%d kinds of key, snowflake %+v, uuid v4 %+v: random keys split pages", len(byKey), flake, text)
		}
		if text.TableBytes <= flake.TableBytes || text.IndexBytes <= flake.IndexBytes {
			t.Errorf("snowflake %+v, uuid v4 as text %+v: a longer, random key takes more room", flake, text)
		}
	})
}
