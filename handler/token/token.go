// Package token signs and verifies the JSON Web Tokens that authenticate users. It accepts only HS256 and only tokens
// with an expiry (RFC 7519, RFC 8725).
package token

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"seckill/service"
	"seckill/service/idgen"
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

// Leeway is the difference between the clocks of two machines that is tolerated.
const Leeway = 5 * time.Second

// maxLength limits the work for unverified tokens. Tokens of the shop have about 250 bytes.
const maxLength = 4096

// cacheSize is the number of verified tokens that are cached; about half a kilobyte each.
const cacheSize = 20_000

// The reasons for which Verify refuses a token.
var (
	ErrInvalid = errors.New("token: not a valid token of this shop")
	ErrExpired = errors.New("token: expired")
	ErrRevoked = errors.New("token: revoked")
)

// Config configures a Verifier.
type Config struct {
	// Keys are the accepted signing keys, at least one. Use several while one key replaces another.
	Keys [][]byte
	// Revoked, if set, is called at every use of a token. It must be fast and safe for use by many goroutines. With all
	// claims it can revoke one token, or all tokens of a user that were issued before a time.
	Revoked func(Claims) bool
}

// Verifier verifies tokens. It is safe for use by many goroutines.
//
// It caches tokens whose signature it has checked. Expiry and revocation are checked at each use.
type Verifier struct {
	keys    jwt.VerificationKeySet
	parser  *jwt.Parser
	revoked func(Claims) bool
	cache   *lru.Cache[string, Claims] // by token
}

// NewVerifier refuses keys that are too short.
func NewVerifier(cfg Config) (*Verifier, error) {
	if len(cfg.Keys) == 0 {
		return nil, errors.New("token: at least one key is required")
	}
	v := &Verifier{revoked: cfg.Revoked}
	for _, key := range cfg.Keys {
		if err := validKey(key); err != nil {
			return nil, err
		}
		v.keys.Keys = append(v.keys.Keys, slices.Clone(key))
	}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(Leeway), jwt.WithStrictDecoding(),
	)
	var err error
	v.cache, err = lru.New[string, Claims](cacheSize)
	return v, err
}

// Verify returns the claims of a token, or an error that is ErrInvalid, ErrExpired or ErrRevoked.
func (v *Verifier) Verify(token string) (Claims, error) {
	claims, cached := v.cache.Get(token)
	if !cached {
		var err error
		if claims, err = v.parse(token); err != nil {
			return Claims{}, err
		}
		v.cache.Add(strings.Clone(token), claims) // the token may be part of a longer string
	}
	if !time.Now().Before(claims.Expires.Add(Leeway)) {
		return Claims{}, ErrExpired
	}
	if v.revoked != nil && v.revoked(claims) {
		return Claims{}, ErrRevoked
	}
	return claims, nil
}

// parse checks signature, form and expiry. Verify checks expiry again, for cached tokens.
func (v *Verifier) parse(token string) (Claims, error) {
	if len(token) > maxLength {
		return Claims{}, ErrInvalid
	}
	var parsed jwtClaims
	_, err := v.parser.ParseWithClaims(token, &parsed, func(*jwt.Token) (any, error) { return v.keys, nil })
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Claims{}, ErrExpired
	case err != nil:
		return Claims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return parsed.claims()
}

func (p *jwtClaims) claims() (Claims, error) {
	user, err := idgen.ParseID(p.Subject)
	if err != nil {
		return Claims{}, fmt.Errorf("%w: sub: %w", ErrInvalid, err)
	}
	if p.Role != User && p.Role != Admin {
		return Claims{}, fmt.Errorf("%w: role is neither user nor admin", ErrInvalid)
	}
	c := Claims{User: service.UserID(user), Role: p.Role, ID: p.ID, Expires: p.ExpiresAt.Time}
	if p.IssuedAt != nil {
		c.Issued = p.IssuedAt.Time
	}
	return c, nil
}
