package idgen_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

func benchSnowflake(b *testing.B, opts ...idgen.Option) *idgen.Snowflake {
	b.Helper()
	g, err := idgen.NewSnowflake(b.Context(), idgen.NewStatic(0), opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close(context.Background()) })
	return g
}

func benchSegment(b *testing.B) *idgen.Segment {
	b.Helper()
	g, err := idgen.NewSegment(b.Context(), &idgentest.Ranges{}, idgen.WithStep(1_000_000, 10_000_000))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close(context.Background()) })
	return g
}

func serial(b *testing.B, g idgen.Generator) {
	ctx := context.Background()
	for b.Loop() {
		if _, err := g.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func parallel(b *testing.B, g idgen.Generator) {
	ctx := context.Background()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkSegment and BenchmarkSnowflake measure Next; the latter is held to 4,096 ids a millisecond by its layout, of
// which 100 ms are ahead.
func BenchmarkSegment(b *testing.B) {
	b.Run("serial", func(b *testing.B) { serial(b, benchSegment(b)) })
	b.Run("parallel", func(b *testing.B) { parallel(b, benchSegment(b)) })
}

func BenchmarkSnowflake(b *testing.B) {
	b.Run("serial", func(b *testing.B) { serial(b, benchSnowflake(b)) })
	b.Run("parallel", func(b *testing.B) { parallel(b, benchSnowflake(b)) })
}

// BenchmarkNextN256 measures a call for 256 ids and reports the time of one of them.
func BenchmarkNextN256(b *testing.B) {
	for name, g := range map[string]idgen.Generator{"segment": benchSegment(b), "snowflake": benchSnowflake(b, wide())} {
		b.Run(name, func(b *testing.B) {
			ids := make([]idgen.ID, 256)
			for b.Loop() {
				if err := g.NextN(context.Background(), ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/id")
		})
	}
}

// wide is a layout whose cap does not decide: 4 million ids a millisecond.
func wide() idgen.Option {
	return idgen.WithLayout(idgen.Layout{
		Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), TimeBits: 40, WorkerBits: 1, SequenceBits: 22,
	})
}

// BenchmarkSnowflakeWide measures Next where the layout's cap does not decide.
func BenchmarkSnowflakeWide(b *testing.B) {
	b.Run("serial", func(b *testing.B) { serial(b, benchSnowflake(b, wide())) })
	b.Run("parallel", func(b *testing.B) { parallel(b, benchSnowflake(b, wide())) })
}

// BenchmarkSnowflakeBurst takes 100,000 ids one by one, as fast as it can, from a generator that has had time to rest.
func BenchmarkSnowflakeBurst(b *testing.B) {
	g := benchSnowflake(b)
	for b.Loop() {
		b.StopTimer()
		time.Sleep(30 * time.Millisecond) // the clock catches up with the burst before
		b.StartTimer()
		for range 100_000 {
			if _, err := g.Next(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/id")
}

// BenchmarkSnowflakeSustained takes a second's ids one by one, as fast as the layout lets it, and reports the rate and
// what it cost of one core.
func BenchmarkSnowflakeSustained(b *testing.B) {
	const second = 1000 * 4096
	g := benchSnowflake(b)
	for range 600_000 { // more than the burst, which comes on top of the first second otherwise
		if _, err := g.Next(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	before := cpuTime(b)
	for b.Loop() {
		for range second {
			if _, err := g.Next(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*second/float64(b.Elapsed().Milliseconds()), "ids/ms")
	b.ReportMetric(100*(cpuTime(b)-before).Seconds()/b.Elapsed().Seconds(), "%core")
}

func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// slowStore takes 20 ms for a load, as a database in trouble does.
type slowStore struct{ idgentest.Ranges }

func (s *slowStore) Allocate(ctx context.Context, n int64) (idgen.Range, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Ranges.Allocate(ctx, n)
}

// BenchmarkSlowStore takes ten million ids one by one while each load takes 20 ms, and reports the slowest call, and
// how many took longer than a millisecond. Ids are taken at 2 million a second, so that a segment of 200,000 lasts for
// 100 ms: a store that cannot keep up with demand would be slow with any number of buffers.
func BenchmarkSlowStore(b *testing.B) {
	for name, part := range map[string]float64{"double": 0.1, "single": 1} {
		b.Run(name, func(b *testing.B) {
			g, err := idgen.NewSegment(b.Context(), &slowStore{}, idgen.WithLoadAt(part), idgen.WithStep(200_000, 200_000))
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close(context.Background())
			slowest(b, func() error {
				_, err := g.Next(context.Background())
				return err
			})
			b.ReportMetric(float64(g.Stats().Waited-1), "waits") // one is the first load
		})
	}
	// What the machine's other work costs a call that does nothing.
	b.Run("control", func(b *testing.B) { slowest(b, func() error { return nil }) })
}

// slowest makes ten million calls and reports how slow they were.
func slowest(b *testing.B, next func() error) {
	var worst time.Duration
	over := 0
	for b.Loop() {
		start := time.Now()
		for i := range 10_000_000 {
			before := time.Now()
			if err := next(); err != nil {
				b.Fatal(err)
			}
			took := time.Since(before)
			worst = max(worst, took)
			if took > time.Millisecond {
				over++
			}
			if i%2000 == 0 { // 2,000 a millisecond at the most
				time.Sleep(time.Until(start.Add(time.Duration(i/2000) * time.Millisecond)))
			}
		}
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
	b.ReportMetric(float64(over)/float64(b.N), "calls>1ms")
}
