// Package zkids keeps worker leases in ZooKeeper.
//
// A pair of workers is a node that is never deleted, because its next holder starts at the ceilings in it. A lease has
// ended when its node was not written for the lease's time. ZooKeeper records when a node was written, by its own clock,
// and returns its time with every write. So a lease does not depend on the client's session, whose timeout the server
// may shorten. All changes are conditional on the node's version.
package zkids

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/service/idgen"
)

// Leases is an idgen.LeaseStore.
type Leases struct {
	conn *zk.Conn
	root string
	acl  []zk.ACL
}

// New returns a store with its nodes below root, such as "/seckill/ids". It creates nodes with acl. The caller closes the
// connection.
func New(conn *zk.Conn, root string, acl []zk.ACL) *Leases {
	return &Leases{conn: conn, root: root, acl: acl}
}

// pairData is the content of a pair's node.
type pairData struct {
	Owner    string         `json:"owner"` // empty when it was released
	Fence    uint64         `json:"fence"`
	TTL      int64          `json:"ttl_ms"`
	Ceilings idgen.Ceilings `json:"ceilings_ms"`
}

// pairNode is a pair's node as it was read.
type pairNode struct {
	pairData
	version int32
	written int64 // Unix milliseconds of ZooKeeper's clock
}

func (s *Leases) layoutPath() string    { return path.Join(s.root, "layout") }
func (s *Leases) clockPath() string     { return path.Join(s.root, "clock") }
func (s *Leases) pairsPath() string     { return path.Join(s.root, "pairs") }
func (s *Leases) pairPath(n int) string { return path.Join(s.pairsPath(), strconv.Itoa(n)) }

// Acquire implements idgen.LeaseStore.
func (s *Leases) Acquire(ctx context.Context, want idgen.LeaseRequest) (idgen.Grant, error) {
	if err := s.prepare(ctx, want.Layout); err != nil {
		return idgen.Grant{}, err
	}
	for {
		grant, err := s.try(ctx, want)
		// Another instance took this pair first. Each time there is one pair less to compete for.
		if !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNodeExists) {
			return grant, err
		}
	}
}

// prepare creates the nodes that all pairs share, and checks the layout.
func (s *Leases) prepare(ctx context.Context, layout string) error {
	for _, n := range []struct{ path, data string }{
		{s.clockPath(), ""}, {s.pairsPath(), ""}, {s.layoutPath(), layout},
	} {
		if err := s.ensure(ctx, n.path, n.data); err != nil {
			return err
		}
	}
	stored, err := do(ctx, func() (string, error) {
		data, _, err := s.conn.Get(s.layoutPath())
		return string(data), err
	})
	if err == nil && stored != layout {
		err = fmt.Errorf("%w: ids of this ZooKeeper are made with %s, not with %s", idgen.ErrLayout, stored, layout)
	}
	return err
}

// ensure creates a node and its parents, if they do not exist.
func (s *Leases) ensure(ctx context.Context, p, data string) error {
	_, err := do(ctx, func() (string, error) { return s.conn.Create(p, []byte(data), 0, s.acl) })
	if errors.Is(err, zk.ErrNoNode) {
		if err := s.ensure(ctx, path.Dir(p), ""); err != nil {
			return err
		}
		return s.ensure(ctx, p, data)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// try looks for a pair and takes it.
func (s *Leases) try(ctx context.Context, want idgen.LeaseRequest) (idgen.Grant, error) {
	now, err := s.now(ctx)
	if err != nil {
		return idgen.Grant{}, err
	}
	nodes, err := s.read(ctx, want)
	if err != nil {
		return idgen.Grant{}, err
	}
	var pairs []idgen.Pair
	for n := want.First; n < want.First+want.Count; n++ {
		if node, ok := nodes[n]; ok {
			live := node.Owner != "" && now < node.written+node.TTL
			pairs = append(pairs, idgen.Pair{Grant: node.grant(n), Live: live})
		}
	}
	pair, known, err := want.Choose(pairs)
	if err != nil {
		return idgen.Grant{}, err
	}
	next := pairNode{
		pairData: pairData{
			Owner: want.Owner, Fence: pair.Fence + 1, TTL: want.TTL.Milliseconds(), Ceilings: pair.Ceilings,
		},
		version: nodes[pair.Pair].version,
	}
	return next.grant(pair.Pair), s.write(ctx, pair.Pair, next, !known)
}

func (n pairNode) grant(pair int) idgen.Grant {
	return idgen.Grant{Pair: pair, Owner: n.Owner, Fence: n.Fence, Ceilings: n.Ceilings}
}

// now returns ZooKeeper's time, by writing a node.
func (s *Leases) now(ctx context.Context) (int64, error) {
	return do(ctx, func() (int64, error) {
		stat, err := s.conn.Set(s.clockPath(), nil, -1)
		if err != nil {
			return 0, err
		}
		return stat.Mtime, nil
	})
}

// read returns the existing nodes of the range's pairs.
func (s *Leases) read(ctx context.Context, want idgen.LeaseRequest) (map[int]pairNode, error) {
	names, err := do(ctx, func() ([]string, error) {
		names, _, err := s.conn.Children(s.pairsPath())
		return names, err
	})
	if err != nil {
		return nil, err
	}
	nodes := make(map[int]pairNode, len(names))
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil || n < want.First || n >= want.First+want.Count {
			continue
		}
		if nodes[n], err = s.node(ctx, n); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func (s *Leases) node(ctx context.Context, n int) (pairNode, error) {
	return do(ctx, func() (node pairNode, err error) {
		data, stat, err := s.conn.Get(s.pairPath(n))
		if err != nil {
			return node, err
		}
		node.version, node.written = stat.Version, stat.Mtime
		if err := json.Unmarshal(data, &node.pairData); err != nil {
			return node, fmt.Errorf("node %s: %w", s.pairPath(n), err)
		}
		return node, nil
	})
}

// write writes a pair's node if it still has the version that was read, or creates it if there still is none.
func (s *Leases) write(ctx context.Context, n int, node pairNode, create bool) error {
	data, err := json.Marshal(node.pairData)
	if err != nil {
		return err
	}
	_, err = do(ctx, func() (none struct{}, err error) {
		if create {
			_, err = s.conn.Create(s.pairPath(n), data, 0, s.acl)
		} else {
			_, err = s.conn.Set(s.pairPath(n), data, node.version)
		}
		return none, err
	})
	return err
}

// Renew implements idgen.LeaseStore.
func (s *Leases) Renew(ctx context.Context, held idgen.Grant, ttl time.Duration, c idgen.Ceilings) error {
	return s.change(ctx, held, func(node *pairNode) {
		node.TTL = ttl.Milliseconds()
		for i := range c {
			node.Ceilings[i] = max(node.Ceilings[i], c[i])
		}
	})
}

// Release implements idgen.LeaseStore.
func (s *Leases) Release(ctx context.Context, held idgen.Grant, c idgen.Ceilings) error {
	err := s.change(ctx, held, func(node *pairNode) { node.Owner, node.Ceilings = "", c })
	if errors.Is(err, idgen.ErrLeaseLost) {
		return nil
	}
	return err
}

// change writes a pair's node if it is still held. When the version has changed, either another holder has written the
// node, or an earlier write whose answer was lost. Reading it again shows which.
func (s *Leases) change(ctx context.Context, held idgen.Grant, edit func(*pairNode)) error {
	for {
		node, err := s.node(ctx, held.Pair)
		if errors.Is(err, zk.ErrNoNode) || err == nil && (node.Owner != held.Owner || node.Fence != held.Fence) {
			return idgen.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		edit(&node)
		if err := s.write(ctx, held.Pair, node, false); !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
}

// do runs a request until ctx ends. The library has no contexts, so an abandoned request may still take effect. That is
// why every change is conditional.
func do[T any](ctx context.Context, request func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("zookeeper: %w", context.Cause(ctx))
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := request()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return none, fmt.Errorf("zookeeper: %w", a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		return none, fmt.Errorf("zookeeper: %w", context.Cause(ctx))
	}
}
