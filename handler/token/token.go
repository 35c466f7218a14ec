// Package token signs and verifies the JSON Web Tokens that name a user of the shop: HS256 and nothing else, always
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

// Role is what a token allows beyond being a user.
type Role string

// The roles. An admin is a user too.
const (
	User  Role = "user"
	Admin Role = "admin"
)

// MinKeyBytes is the least length of a key: that of the hash (RFC 7518, section 3.2).
const MinKeyBytes = 32

// Claims are what a token says.
type Claims struct {
	User    service.UserID // "sub", positive
	Role    Role           // "role"
	ID      string         // "jti", for revocation; "" if the token has none
	Issued  time.Time      // "iat", zero if the token has none
	Expires time.Time      // "exp", never zero
}

// wireClaims is how claims stand in a token.
type wireClaims struct {
	Role Role `json:"role"`
	jwt.RegisteredClaims
}

// Sign issues a token. Issued is now if it is zero, and ID is random if it is empty. It refuses keys that are too
// short and claims that Verify would refuse.
func Sign(key []byte, c Claims) (string, error) {
	if err := validKey(key); err != nil {
		return "", err
	}
	if c.User < 1 || (c.Role != User && c.Role != Admin) || c.Expires.IsZero() {
		return "", errors.New("token: needs a positive user, the role user or admin, and an expiry")
	}
	if c.Issued.IsZero() {
		c.Issued = time.Now()
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, wireClaims{
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
