package main

import (
	"fmt"
	"sync"
	"time"

	"seckill/handler/token"
	"seckill/service"
)

// admin is the user whose tokens are an admin's.
const admin = 1

// firstBuyer is the first user of a load; admin is none of them.
const firstBuyer = 2

// tokens signs the tokens of a load's users and remembers them, so that each is signed once. It is safe for use by many
// goroutines.
type tokens struct {
	key     []byte
	expires time.Time
	signed  sync.Map // int64 → string
}

// newTokens fails if the key cannot sign.
func newTokens(key []byte, ttl time.Duration) (*tokens, error) {
	t := &tokens{key: key, expires: time.Now().Add(ttl)}
	_, err := t.sign(admin)
	return t, err
}

// of returns the token of a user.
func (t *tokens) of(user int64) string {
	if known, ok := t.signed.Load(user); ok {
		return known.(string)
	}
	signed, err := t.sign(user)
	if err != nil { // newTokens has tried it, so the user is none
		return fmt.Sprintf("no token for user %d: %v", user, err)
	}
	t.signed.Store(user, signed)
	return signed
}

func (t *tokens) sign(user int64) (string, error) {
	role := token.User
	if user == admin {
		role = token.Admin
	}
	return token.Sign(t.key, token.Claims{User: service.UserID(user), Role: role, Expires: t.expires})
}

// mostPrepared is how many tokens are signed ahead at most, which takes about a second; others are signed when needed.
const mostPrepared = 100_000

// prepare signs the tokens of users ahead of the load, as buyers log in ahead of a sale: the load does not pay for that.
func (t *tokens) prepare(first, users int64) {
	for user := first; user < first+min(users, mostPrepared); user++ {
		t.of(user)
	}
}
