// Package token signs and verifies the JSON Web Tokens that authenticate users. It accepts only HS256 and only tokens
// with an expiry (RFC 7519, RFC 8725).
package token

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/service"
)

// Role is the permission of a token.
type Role string

// The roles. An admin is a user too.
const (
	User  Role = "user"
	Admin Role = "admin"
)

// MinKeyBytes is the minimum length of a key, which is the size of the hash (RFC 7518, section 3.2).
const MinKeyBytes = 32

// Claims are the contents of a token.
type Claims struct {
	User    service.UserID // "sub", positive
	Role    Role           // "role"
	ID      string         // "jti", for revocation; "" if the token has none
	Issued  time.Time      // "iat", zero if the token has none
	Expires time.Time      // "exp", never zero
}

// jwtClaims is the encoded form of Claims.
type jwtClaims struct {
	Role Role `json:"role"`
	jwt.RegisteredClaims
}

// Sign issues a token. Issued defaults to now, ID to a random text. Sign refuses short keys and claims that Verify would
// refuse.
func Sign(key []byte, c Claims) (string, error) {
	if err := validKey(key); err != nil {
		return "", err
	}
	if c.User < 1 || (c.Role != User && c.Role != Admin) || c.Expires.IsZero() {
		return "", errors.New("token: a positive user, the role user or admin, and an expiry are required")
	}
	if c.Issued.IsZero() {
		c.Issued = time.Now()
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwtClaims{
		Role: c.Role,
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: fmt.Sprint(int64(c.User)), ID: c.ID,
			IssuedAt: jwt.NewNumericDate(c.Issued), ExpiresAt: jwt.NewNumericDate(c.Expires),
		},
	}).SignedString(key)
}

func validKey(key []byte) error {
	if len(key) < MinKeyBytes {
		return fmt.Errorf("token: the key has %d bytes; HS256 needs at least %d (try: openssl rand -base64 48)", len(key), MinKeyBytes)
	}
	return nil
}
