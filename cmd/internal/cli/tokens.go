package cli

import (
	"fmt"
	"sync"
	"time"

	"seckill/handler/token"
	"seckill/service"
)

// Users of a load. The tokens of Admin have the role of an admin; buyers are numbered from FirstBuyer.
const (
	Admin      = 1
	FirstBuyer = 2
)

// Limits of a load on one machine: each client is a connection, and each user takes memory.
const (
	MaxClients    = 20_000
	MaxDuplicates = 1_000
	MaxRequests   = 100_000_000
)

// Tokens signs and caches the tokens of a load's users. It is safe for concurrent use.
type Tokens struct {
	key     []byte
	expires time.Time
	signed  sync.Map // int64 → string
}

// NewTokens returns tokens that are valid for a day. It fails if the key cannot sign.
func NewTokens(key []byte) (*Tokens, error) {
	t := &Tokens{key: key, expires: time.Now().Add(24 * time.Hour)}
	_, err := t.sign(Admin)
	return t, err
}

// Of returns the token of a user.
func (t *Tokens) Of(user int64) string {
	if known, ok := t.signed.Load(user); ok {
		return known.(string)
	}
	signed, err := t.sign(user)
	if err != nil { // NewTokens has signed with this key, so the user is invalid
		return fmt.Sprintf("no token for user %d: %v", user, err)
	}
	t.signed.Store(user, signed)
	return signed
}

func (t *Tokens) sign(user int64) (string, error) {
	role := token.User
	if user == Admin {
		role = token.Admin
	}
	return token.Sign(t.key, token.Claims{User: service.UserID(user), Role: role, Expires: t.expires})
}

// MaxPrepared is how many tokens Prepare signs, which takes about a second. The others are signed when needed.
const MaxPrepared = 100_000

// Prepare signs the tokens of users before the load begins, so that signing does not slow the load down.
func (t *Tokens) Prepare(first, users int64) {
	for user := first; user < first+min(users, MaxPrepared); user++ {
		t.Of(user)
	}
}
