package zklock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/service/lock"
)

// node is the node of one hold or waiter. Its name is made like Curator's, so that Curator's InterProcessMutex can share
// the lock: "_c_", a random id, "-lock-" and ten digits. By the id it is found again when the answer to its creation was
// lost.
type node struct {
	session *session
	parent  string
	id      string
	name    string // with the digits, once it is known
	owner   int64  // the session that it belongs to
	token   uint64
}

var world = zk.WorldACL(zk.PermAll)

func newNode(s *session, root, key string) *node {
	return &node{session: s, parent: root + "/" + escape(key), id: "_c_" + rand.Text() + "-lock-"}
}

// escape makes key the name of a node. "." and ".." are no names.
func escape(key string) string {
	return strings.ReplaceAll(url.PathEscape(key), ".", "%2E")
}

func (n *node) path() string { return n.parent + "/" + n.name }

// create creates the node and reads who it belongs to. If its answer gets lost, it looks for the node by its id.
func (n *node) create(ctx context.Context, by time.Time) (pending, error) {
	for {
		full, under, err := ask(ctx, n.session, by, func() (string, error) {
			return n.session.Create(n.parent+"/"+n.id, nil, zk.FlagEphemeralSequential, world)
		})
		switch {
		case err == nil:
			n.name = path.Base(full)
			err = n.identify(ctx, by)
		case errors.Is(err, zk.ErrNoNode):
			err = n.createParents(ctx, by)
			if err == nil {
				continue
			}
		case unanswered(err):
			if err = n.find(ctx, by); err == nil {
				err = n.identify(ctx, by)
			}
		}
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) {
			continue // not created, or gone already with its session
		}
		return under, err
	}
}

// find looks for the node by its id. It returns ErrNoNode if it is not there.
func (n *node) find(ctx context.Context, by time.Time) error {
	children, err := n.siblings(ctx, by)
	if err != nil {
		return err
	}
	for _, name := range children {
		if strings.HasPrefix(name, n.id) {
			n.name = name
			return nil
		}
	}
	return zk.ErrNoNode
}

// identify reads the node's session and token. A node that belongs to an earlier session is no good, though it is still
// visible: ErrNoNode.
func (n *node) identify(ctx context.Context, by time.Time) error {
	stat, err := retry(ctx, n.session, by, func() (*zk.Stat, error) {
		ok, stat, err := n.session.Exists(n.path())
		if err == nil && !ok {
			err = zk.ErrNoNode
		}
		return stat, err
	})
	if err != nil {
		return err
	}
	if stat.EphemeralOwner != n.session.SessionID() {
		return zk.ErrNoNode
	}
	n.owner, n.token = stat.EphemeralOwner, uint64(stat.Czxid)
	return nil
}

// createParents creates the node that stands for the lock, and those above. It is a container, which the servers remove
// when its last child is gone.
func (n *node) createParents(ctx context.Context, by time.Time) error {
	for i := 1; i <= len(n.parent); i++ {
		if i < len(n.parent) && n.parent[i] != '/' {
			continue
		}
		each := n.parent[:i]
		_, err := retry(ctx, n.session, by, func() (string, error) {
			if i < len(n.parent) {
				return n.session.Create(each, nil, zk.FlagPersistent, world)
			}
			return n.session.CreateContainer(each, nil, zk.FlagContainer, world)
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// siblings returns the names of all nodes of the lock; none if there is no such lock.
func (n *node) siblings(ctx context.Context, by time.Time) ([]string, error) {
	children, err := retry(ctx, n.session, by, func() ([]string, error) {
		children, _, err := n.session.Children(n.parent)
		return children, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return children, err
}

// place looks where the node stands. It returns ErrNoNode if it is gone, and otherwise the name of the node before it,
// "" if it is the first.
func (n *node) place(ctx context.Context, by time.Time) (before string, err error) {
	children, err := n.siblings(ctx, by)
	if err != nil {
		return "", err
	}
	own, ok := sequence(n.name)
	if !ok {
		return "", fmt.Errorf("zklock: the server named a node %q", n.name)
	}
	present, highest := false, -1
	for _, name := range children {
		at, ok := sequence(name)
		switch {
		case name == n.name:
			present = true
		case ok && at < own && at > highest:
			before, highest = name, at
		}
	}
	if !present || n.owner != n.session.SessionID() {
		return "", zk.ErrNoNode
	}
	return before, nil
}

// taken reports whether there is a node of the lock at all.
func (n *node) taken(ctx context.Context, by time.Time) (bool, error) {
	children, err := n.siblings(ctx, by)
	return slices.ContainsFunc(children, func(name string) bool {
		_, ok := sequence(name)
		return ok
	}), err
}

var lockName = regexp.MustCompile(`lock-(\d{10})$`)

// sequence returns the number that the server gave to a node; false for nodes that are none of a lock.
func sequence(name string) (int, bool) {
	m := lockName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// remove deletes the node, also one whose creation was never answered. It returns lock.ErrLost if it was gone.
func (n *node) remove() error {
	ctx, by := context.Background(), time.Now().Add(n.session.removal)
	if n.name == "" {
		if err := n.find(ctx, by); err != nil {
			return lostOr(err)
		}
	}
	_, _, err := ask(ctx, n.session, by, func() (struct{}, error) { return struct{}{}, n.session.Delete(n.path(), -1) })
	if unanswered(err) {
		err = n.removeAgain(ctx, by)
	}
	return lostOr(err)
}

// removeAgain deletes the node after an attempt whose answer was lost: now its absence is no loss.
func (n *node) removeAgain(ctx context.Context, by time.Time) error {
	_, err := retry(ctx, n.session, by, func() (struct{}, error) { return struct{}{}, n.session.Delete(n.path(), -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// lostOr translates the end of a node.
func lostOr(err error) error {
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) {
		return lock.ErrLost
	}
	return err
}
