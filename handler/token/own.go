package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"io"
	"strings"
	"sync"
	"time"

	"seckill/handler/jsonbody"
	"seckill/service"
	"seckill/service/idgen"
)

// ownHeader begins every token that Sign makes.
var ownHeader = segments.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "."

// segments is how the parts of a token are written (RFC 7515, section 2), and nothing looser.
var segments = base64.RawURLEncoding.Strict()

// parseOwn verifies a token that is good and looks exactly as Sign makes it. All others, good or not, are the parser's to
// judge. It accepts nothing that the parser would not, and says the same of it, for a quarter of the time: a sale begins
// with many tokens that were never seen before.
func (v *Verifier) parseOwn(token string) (c Claims, ok bool) {
	end := strings.LastIndexByte(token, '.')
	if !strings.HasPrefix(token, ownHeader) || end < len(ownHeader) {
		return Claims{}, false
	}
	var buffer [512]byte
	text, ok := decodeSegment(buffer[:0], token[len(ownHeader):end])
	if !ok || !c.read(text) || !c.current(time.Now()) {
		return Claims{}, false
	}
	var raw [64]byte
	signature, ok := decodeSegment(raw[:0], token[end+1:])
	return c, ok && v.signed(token[:end], signature)
}

// decodeSegment appends what a segment says to empty, if it fits. A segment holds no dot.
func decodeSegment(empty []byte, segment string) ([]byte, bool) {
	if segments.DecodedLen(len(segment)) > cap(empty) {
		return nil, false
	}
	text, err := segments.AppendDecode(empty, []byte(segment))
	return text, err == nil
}

func (v *Verifier) signed(text string, signature []byte) bool {
	for _, mac := range v.macs {
		if mac.verify(text, signature) {
			return true
		}
	}
	return false
}

// macKey is HMAC-SHA-256 with one key. What the key makes of the hash is kept for the next token.
type macKey struct{ pool sync.Pool } // of hash.Hash

func newMACKey(key []byte) *macKey {
	return &macKey{sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

func (k *macKey) verify(text string, signature []byte) bool {
	mac := k.pool.Get().(hash.Hash)
	defer k.pool.Put(mac)
	mac.Reset()
	_, _ = io.WriteString(mac, text) // never fails
	var sum [sha256.Size]byte
	return hmac.Equal(mac.Sum(sum[:0]), signature)
}

// read takes claims of which the token has no others.
func (c *Claims) read(text []byte) bool {
	var (
		user            idgen.ID
		role            string
		issued, expires int64
	)
	err := jsonbody.Decode(text,
		jsonbody.Field{Name: "sub", Into: &user, Required: true},
		jsonbody.Field{Name: "role", Into: &role, Required: true},
		jsonbody.Field{Name: "exp", Into: &expires, Required: true},
		jsonbody.Field{Name: "iat", Into: &issued, Required: true},
		jsonbody.Field{Name: "jti", Into: &c.ID, Required: true})
	c.User, c.Role = service.UserID(user), Role(role)
	c.Issued, c.Expires = time.Unix(issued, 0), time.Unix(expires, 0)
	const exact = 1 << 53 // the parser reads times as floating-point numbers
	return err == nil && (c.Role == User || c.Role == Admin) && min(issued, expires) > 0 && max(issued, expires) < exact
}

// current tells whether the claims hold now.
func (c *Claims) current(now time.Time) bool {
	return now.Before(c.Expires.Add(Leeway)) && !now.Before(c.Issued.Add(-Leeway))
}
