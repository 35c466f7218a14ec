package idgen_test

import (
	"errors"
	"testing"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

func TestSnowflake(t *testing.T) {
	idgentest.Run(t, func(t *testing.T) idgentest.New {
		stores := []*idgen.Static{idgen.NewStatic(0), idgen.NewStatic(2)}
		return func(t *testing.T) idgen.Generator {
			for _, store := range stores {
				g, err := idgen.NewSnowflake(t.Context(), store)
				if errors.Is(err, idgen.ErrNoWorker) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				return g
			}
			t.Fatal("both stores are taken")
			return nil
		}
	})
}
