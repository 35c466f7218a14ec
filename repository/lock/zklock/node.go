package zklock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/service/lock"
)

// node is the node of one holder or waiter. Its name has the form of Curator's names, so that Curator's InterProcessMutex
// can share the lock: "_c_", a random id, "-lock-" and ten digits. The id finds the node when the answer to its creation
// was lost.
type node struct {
	session *session
	parent  string
	id      string
	name    string // the id and the digits; "" until it is known
	owner   int64  // the session that the node belongs to
	token   uint64
}

var world = zk.WorldACL(zk.PermAll)

func newNode(s *session, root, key string) *node {
	return &node{session: s, parent: root + "/" + escape(key), id: "_c_" + rand.Text() + "-lock-"}
}

// escape makes key a valid name of a node. "." and ".." are not valid.
func escape(key string) string {
	return strings.ReplaceAll(url.PathEscape(key), ".", "%2E")
}

func (n *node) path() string { return n.parent + "/" + n.name }

// create creates the node, and its parents if necessary, and reads its owner and token. When it returns a running
// request, that request may still create the node.
func (n *node) create(ctx context.Context, deadline time.Time) (running, error) {
	for {
		full, r, err := request(ctx, n.session, deadline, func() (string, error) {
			return n.session.Create(n.parent+"/"+n.id, nil, zk.FlagEphemeralSequential, world)
		})
		if isUnanswered(err) {
			err = n.find(ctx, deadline)
		} else if err == nil {
			n.name = path.Base(full)
		}
		if err == nil {
			err = n.readStat(ctx, deadline)
		}
		if errors.Is(err, zk.ErrNoNode) { // the parents do not exist, or the node was not created or is gone already
			err = n.createParents(ctx, deadline)
			if err == nil {
				continue
			}
		}
		if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrSessionExpired) {
			return r, err
		}
	}
}

// find looks for the node by its id. It returns zk.ErrNoNode if there is none.
func (n *node) find(ctx context.Context, deadline time.Time) error {
	siblings, err := n.siblings(ctx, deadline)
	if err != nil {
		return err
	}
	for _, name := range siblings {
		if strings.HasPrefix(name, n.id) {
			n.name = name
			return nil
		}
	}
	return zk.ErrNoNode
}

// readStat reads the node's owner and token. It returns zk.ErrNoNode for a node of an earlier session, which is useless
// although it is still visible.
func (n *node) readStat(ctx context.Context, deadline time.Time) error {
	stat, err := repeat(ctx, n.session, deadline, func() (*zk.Stat, error) {
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

// createParents creates the node that stands for the lock, and those above it. The lock's node is a container, which the
// servers remove when its last child is gone.
func (n *node) createParents(ctx context.Context, deadline time.Time) error {
	for i := 1; i <= len(n.parent); i++ {
		if i < len(n.parent) && n.parent[i] != '/' {
			continue
		}
		_, err := repeat(ctx, n.session, deadline, func() (string, error) {
			if i < len(n.parent) {
				return n.session.Create(n.parent[:i], nil, zk.FlagPersistent, world)
			}
			return n.session.CreateContainer(n.parent, nil, zk.FlagContainer, world)
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// siblings returns the names of all nodes of the lock. There are none if the lock does not exist.
func (n *node) siblings(ctx context.Context, deadline time.Time) ([]string, error) {
	siblings, err := repeat(ctx, n.session, deadline, func() ([]string, error) {
		children, _, err := n.session.Children(n.parent)
		return children, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return siblings, err
}

// predecessor returns the name of the node before this one, or "" if this one is the first. It returns zk.ErrNoNode if
// this one is gone.
func (n *node) predecessor(ctx context.Context, deadline time.Time) (name string, err error) {
	siblings, err := n.siblings(ctx, deadline)
	if err != nil {
		return "", err
	}
	own, ok := sequence(n.name)
	if !ok {
		return "", fmt.Errorf("zklock: the server named a node %q", n.name)
	}
	present, highest := false, -1
	for _, sibling := range siblings {
		number, ok := sequence(sibling)
		if sibling == n.name {
			present = true
		} else if ok && number < own && number > highest {
			name, highest = sibling, number
		}
	}
	if !present || n.owner != n.session.SessionID() {
		return "", zk.ErrNoNode
	}
	return name, nil
}

// first returns the name of the holder's node, or "" if the lock is free.
func (n *node) first(ctx context.Context, deadline time.Time) (name string, err error) {
	siblings, err := n.siblings(ctx, deadline)
	lowest := -1
	for _, sibling := range siblings {
		if number, ok := sequence(sibling); ok && (lowest < 0 || number < lowest) {
			name, lowest = sibling, number
		}
	}
	return name, err
}

var lockName = regexp.MustCompile(`lock-(\d{10})$`)

// sequence returns the number that the server appended to a node's name. ok is false if the name is not that of a lock's
// node.
func sequence(name string) (number int, ok bool) {
	m := lockName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	number, err := strconv.Atoi(m[1])
	return number, err == nil
}

// remove deletes the node, even if the answer to its creation was lost. It returns lock.ErrLost if there was no node.
func (n *node) remove() error {
	ctx, deadline := context.Background(), time.Now().Add(n.session.removal)
	if n.name == "" {
		if err := n.find(ctx, deadline); err != nil {
			return asLost(err)
		}
	}
	attempts := 0
	_, err := repeat(ctx, n.session, deadline, func() (struct{}, error) {
		attempts++
		err := n.session.Delete(n.path(), -1)
		if attempts > 1 && errors.Is(err, zk.ErrNoNode) {
			err = nil // the attempt whose answer was lost has deleted it
		}
		return struct{}{}, err
	})
	return asLost(err)
}

// asLost turns the errors that mean that the node is gone into lock.ErrLost.
func asLost(err error) error {
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrSessionExpired) {
		return lock.ErrLost
	}
	return err
}
