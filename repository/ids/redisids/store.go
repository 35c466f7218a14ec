// Package redisids allocates ranges of ids from a counter in Redis, and checks it against a floor in a database. Redis may
// lose what it has acknowledged, and a counter that went back would allocate numbers twice.
package redisids

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/service/idgen"
)

// Floor is the durable record of allocated numbers.
type Floor interface {
	// Floor returns the highest number that is known to be allocated, and the minimum size of a range.
	Floor(ctx context.Context) (floor, least int64, err error)
	// Claim records that the numbers from first to last are allocated. It returns false, and records nothing, when the
	// floor has already reached first. It must be atomic. After an error the numbers must not be used.
	Claim(ctx context.Context, first, last int64) (bool, error)
}

// Store is an idgen.RangeStore. Each range costs one script in Redis and two statements on the floor.
type Store struct {
	client redis.UniversalClient
	key    string
	floor  Floor
}

// New returns a store whose counter is key. The caller closes the client. The client need not retry: a range whose answer
// was lost is skipped, and another one is allocated.
func New(client redis.UniversalClient, key string, floor Floor) *Store {
	return &Store{client: client, key: key, floor: floor}
}

var (
	//go:embed allocate.lua
	allocateText string
	//go:embed restore.lua
	restoreText string
)

// overtakenTries bounds how often a range is skipped because another instance has claimed a later one in the meantime.
const overtakenTries = 20

// Allocate implements idgen.RangeStore. It fails with idgen.ErrCounterLost, and changes nothing, when the counter is
// missing or below the floor.
//
// The floor is read before the counter is moved, so a counter below it has certainly lost something. The range is used
// only after it was claimed, so that even a counter that goes back between the two cannot allocate a number twice.
func (s *Store) Allocate(ctx context.Context, n int64) (idgen.Range, error) {
	for range overtakenTries {
		floor, least, err := s.floor.Floor(ctx)
		if err != nil {
			return idgen.Range{}, err
		}
		count := max(n, least)
		last, err := s.increment(ctx, count, floor)
		if err != nil {
			return idgen.Range{}, err
		}
		first := last - count + 1
		claimed, err := s.floor.Claim(ctx, first, last)
		if err != nil {
			return idgen.Range{}, err
		}
		if claimed {
			return idgen.Range{First: idgen.ID(first), Count: count, Least: least}, nil
		}
	}
	return idgen.Range{}, fmt.Errorf("redis ids %s: overtaken by other instances %d times in a row", s.key, overtakenTries)
}

// increment adds n to the counter and returns its new value. It sends the script itself each time: it is needed once in
// minutes, and Redis need not know it then.
func (s *Store) increment(ctx context.Context, n, floor int64) (int64, error) {
	answer, err := s.client.Eval(ctx, allocateText, []string{s.key}, n, floor).StringSlice()
	switch {
	case err != nil && strings.Contains(err.Error(), "overflow"):
		return 0, fmt.Errorf("redis ids %s: %w: %w", s.key, idgen.ErrExhausted, err)
	case err != nil:
		return 0, fmt.Errorf("redis ids %s: %w", s.key, err)
	case len(answer) != 2:
		return 0, fmt.Errorf("redis ids %s: cannot understand %q", s.key, answer)
	case answer[0] == "lost" && answer[1] == "":
		return 0, fmt.Errorf("%w: redis has no %s, and ids up to %d are given away", idgen.ErrCounterLost, s.key, floor)
	case answer[0] == "lost":
		return 0, fmt.Errorf("%w: redis has %s at %s, and ids up to %d are given away",
			idgen.ErrCounterLost, s.key, answer[1], floor)
	}
	last, err := strconv.ParseInt(answer[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("redis ids %s: %w", s.key, err)
	}
	return last, nil
}

// Restore raises a counter that is missing or below the floor to the floor, and returns its value. It is for a
// person who knows why the counter was lost. After it, ids are allocated again, and none twice.
func (s *Store) Restore(ctx context.Context) (int64, error) {
	floor, _, err := s.floor.Floor(ctx)
	if err != nil {
		return 0, err
	}
	text, err := s.client.Eval(ctx, restoreText, []string{s.key}, floor).Text()
	if err != nil {
		return 0, fmt.Errorf("restore redis ids %s: %w", s.key, err)
	}
	return strconv.ParseInt(text, 10, 64)
}
