package ids_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/sony/sonyflake/v2"

	"seckill/service/idgen"
)

// next makes one id.
type next func() error

// counter is a store that is never in the way: a segment's own cost is what is measured.
type counter struct{ high atomic.Int64 }

func (c *counter) Allocate(_ context.Context, n int64) (idgen.Range, error) {
	return idgen.Range{First: idgen.ID(c.high.Add(n) - n + 1), Count: n}, nil
}

func segment(b *testing.B) next {
	g, err := idgen.NewSegment(b.Context(), &counter{}, idgen.WithStep(1_000_000, 10_000_000))
	return ours(b, g, err)
}

func ours(b *testing.B, g idgen.Generator, err error) next {
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close(context.Background()) })
	ctx := context.Background()
	return func() error {
		_, err := g.Next(ctx)
		return err
	}
}

// The widest sequences that each layout allows, so that no cap decides: 2^22 a millisecond for the first two.

func snowflakeWide(b *testing.B) next {
	layout := idgen.DefaultLayout()
	layout.TimeBits, layout.DataCenterBits, layout.WorkerBits, layout.SequenceBits = 40, 0, 1, 22
	g, err := idgen.NewSnowflake(b.Context(), idgen.NewStatic(0), idgen.WithLayout(layout))
	return ours(b, g, err)
}

func bwmarrin(b *testing.B) next {
	snowflake.NodeBits, snowflake.StepBits = 0, 22
	node, err := snowflake.NewNode(0)
	if err != nil {
		b.Fatal(err)
	}
	return func() error {
		node.Generate()
		return nil
	}
}

// sonyflakeWide has 2^30 ids a millisecond, with one bit of machine: the library allows no more. It leaves 50 days for
// the time, which is why they begin now.
func sonyflakeWide(b *testing.B) next {
	flake, err := sonyflake.New(sonyflake.Settings{
		BitsSequence: 30, BitsMachineID: 1, TimeUnit: time.Millisecond,
		StartTime: time.Now().Add(-time.Hour),
		MachineID: func() (int, error) { return 1, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	return func() error {
		_, err := flake.NextID()
		return err
	}
}

func uuidV4(*testing.B) next {
	return func() error {
		_, err := uuid.NewRandom()
		return err
	}
}

func uuidV7(*testing.B) next {
	return func() error {
		_, err := uuid.NewV7()
		return err
	}
}

var generators = []struct {
	name string
	make func(*testing.B) next
}{
	{"segment", segment}, {"snowflake", snowflakeWide}, {"bwmarrin", bwmarrin}, {"sonyflake", sonyflakeWide},
	{"uuidv4", uuidV4}, {"uuidv7", uuidV7},
}

func BenchmarkSerial(b *testing.B) {
	for _, g := range generators {
		b.Run(g.name, func(b *testing.B) {
			next := g.make(b)
			for b.Loop() {
				if err := next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParallel(b *testing.B) {
	for _, g := range generators {
		b.Run(g.name, func(b *testing.B) {
			next := g.make(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := next(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkBurst takes 100,000 ids at once, ours within the shop's own layout of 4,096 a millisecond, bwmarrin's in its
// widest. Before each burst there is time to rest.
func BenchmarkBurst(b *testing.B) {
	shop := func(b *testing.B) next {
		g, err := idgen.NewSnowflake(b.Context(), idgen.NewStatic(0))
		return ours(b, g, err)
	}
	for name, make := range map[string]func(*testing.B) next{"snowflake": shop, "bwmarrin": bwmarrin} {
		b.Run(name, func(b *testing.B) {
			next := make(b)
			for b.Loop() {
				b.StopTimer()
				time.Sleep(30 * time.Millisecond)
				b.StartTimer()
				for range 100_000 {
					if err := next(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
