package token

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/service"
	"seckill/service/idgen"
)

// Leeway is how long a token is still accepted after its expiry, and how much earlier before its start, because the
// clocks of two machines differ.
const Leeway = 5 * time.Second

// maxLength bounds the work that a stranger's token can cause. Ours have about 250 bytes.
const maxLength = 4096

// defaultCached is how many verified tokens are remembered; about half a kilobyte each.
const defaultCached = 20_000

// The reasons for which Verify refuses a token. Everything else that is wrong with one is ErrInvalid.
var (
	ErrInvalid = errors.New("token: not a valid token of this shop")
	ErrExpired = errors.New("token: expired")
	ErrRevoked = errors.New("token: revoked")
)

// Config is what a Verifier needs.
type Config struct {
	// Keys that tokens may be signed with, at least one. Several allow one key to be replaced by another.
	Keys [][]byte
	// Revoked, if set, is asked for every use of a token, cached or not. It must be fast and safe for use by many
	// goroutines. It gets all claims, so that one token, or all tokens of a user up to a time, can be revoked.
	Revoked func(Claims) bool
	// Cached is how many verified tokens are remembered. Default 20,000.
	Cached int
}

// Verifier verifies tokens. It is safe for use by many goroutines.
//
// It remembers the tokens whose signature it has checked, so that their next use costs a look-up instead of a hash and
// two JSON documents. Time and revocation are not remembered but checked at each use.
type Verifier struct {
	keys    []jwt.VerificationKey
	macs    []*macKey // the same keys
	parser  *jwt.Parser
	revoked func(Claims) bool
	cache   *cache
}

// NewVerifier refuses keys that are too short.
func NewVerifier(cfg Config) (*Verifier, error) {
	if len(cfg.Keys) == 0 {
		return nil, errors.New("token: no key to verify with")
	}
	v := &Verifier{revoked: cfg.Revoked}
	for _, key := range cfg.Keys {
		if err := validKey(key); err != nil {
			return nil, err
		}
		key = slices.Clone(key)
		v.keys, v.macs = append(v.keys, key), append(v.macs, newMACKey(key))
	}
	if cfg.Cached <= 0 {
		cfg.Cached = defaultCached
	}
	v.cache = newCache(cfg.Cached)
	v.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(Leeway), jwt.WithStrictDecoding(),
	)
	return v, nil
}

// Verify returns what a token says, or one of the errors of this package.
func (v *Verifier) Verify(token string) (Claims, error) {
	claims, known := v.cache.get(token)
	if !known {
		var err error
		if claims, err = v.parse(token); err != nil {
			return Claims{}, err
		}
		v.cache.put(token, claims)
	}
	if !time.Now().Before(claims.Expires.Add(Leeway)) {
		return Claims{}, ErrExpired
	}
	if v.revoked != nil && v.revoked(claims) {
		return Claims{}, ErrRevoked
	}
	return claims, nil
}

// parse checks everything but revocation.
func (v *Verifier) parse(token string) (Claims, error) {
	if claims, ok := v.parseOwn(token); ok {
		return claims, nil
	}
	return v.parseAny(token)
}

// parseAny is parse by the library, for tokens of whatever shape.
func (v *Verifier) parseAny(token string) (Claims, error) {
	if len(token) > maxLength {
		return Claims{}, ErrInvalid
	}
	var wire wireClaims
	_, err := v.parser.ParseWithClaims(token, &wire, func(*jwt.Token) (any, error) {
		return jwt.VerificationKeySet{Keys: v.keys}, nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return Claims{}, ErrExpired
	case err != nil:
		return Claims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return wire.claims()
}

func (w *wireClaims) claims() (Claims, error) {
	user, err := idgen.ParseID(w.Subject) // one spelling for each user
	if err != nil {
		return Claims{}, fmt.Errorf("%w: sub: %w", ErrInvalid, err)
	}
	if w.Role != User && w.Role != Admin {
		return Claims{}, fmt.Errorf("%w: role is neither user nor admin", ErrInvalid)
	}
	c := Claims{User: service.UserID(user), Role: w.Role, ID: w.ID, Expires: w.ExpiresAt.Time}
	if w.IssuedAt != nil {
		c.Issued = w.IssuedAt.Time
	}
	return c, nil
}
