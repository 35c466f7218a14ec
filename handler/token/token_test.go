package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	testKey  = []byte("0123456789abcdef0123456789abcdef")
	otherKey = []byte("another key, which is as long as it has to be")
)

func newVerifier(t testing.TB, cfg Config) *Verifier {
	t.Helper()
	if cfg.Keys == nil {
		cfg.Keys = [][]byte{testKey}
	}
	v, err := NewVerifier(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustSign(t testing.TB, key []byte, c Claims) string {
	t.Helper()
	signed, err := Sign(key, c)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// forge signs any header and claims.
func forge(header, claims string, key []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

const hs256 = `{"alg":"HS256","typ":"JWT"}`

func TestVerifier_SignedTokens(t *testing.T) {
	v := newVerifier(t, Config{Keys: [][]byte{otherKey, testKey}})
	now := time.Now().Truncate(time.Second)
	for _, key := range [][]byte{testKey, otherKey} {
		for _, role := range []Role{User, Admin} {
			want := Claims{User: 1<<62 + 3, Role: role, ID: "id", Issued: now, Expires: now.Add(time.Hour)}
			signed := mustSign(t, key, want)
			for _, how := range []string{"parsed", "cached"} {
				got, err := v.Verify(signed)
				if err != nil || got.User != want.User || got.Role != role || got.ID != "id" || !got.Issued.Equal(now) || !got.Expires.Equal(want.Expires) {
					t.Errorf("%s: %+v %v", how, got, err)
				}
			}
		}
	}
	first, second := mustSign(t, testKey, Claims{User: 1, Role: User, Expires: now.Add(time.Hour)}), mustSign(t, testKey, Claims{User: 1, Role: User, Expires: now.Add(time.Hour)})
	if first == second {
		t.Error("two tokens have the same id")
	}
}

func TestSign_Refusals(t *testing.T) {
	good := Claims{User: 1, Role: User, Expires: time.Now().Add(time.Hour)}
	for name, c := range map[string]Claims{
		"no user":   {Role: User, Expires: good.Expires},
		"no role":   {User: 1, Expires: good.Expires},
		"no expiry": {User: 1, Role: User},
		"root":      {User: 1, Role: "root", Expires: good.Expires},
	} {
		if _, err := Sign(testKey, c); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
	if _, err := Sign(testKey[:31], good); err == nil || !strings.Contains(err.Error(), "31 bytes") {
		t.Errorf("a short key: %v", err)
	}
	if _, err := NewVerifier(Config{Keys: [][]byte{testKey, testKey[:31]}}); err == nil {
		t.Error("verifies with a short key")
	}
	if _, err := NewVerifier(Config{}); err == nil {
		t.Error("verifies without a key")
	}
}

func TestVerifier_ForgedTokens(t *testing.T) {
	v := newVerifier(t, Config{})
	exp := time.Now().Add(time.Hour).Unix()
	claims := fmt.Sprintf(`{"sub":"42","role":"user","exp":%d}`, exp)
	if got, err := v.Verify(forge(hs256, claims, testKey)); err != nil || got.User != 42 {
		t.Fatalf("the genuine token: %+v %v", got, err)
	}
	genuine := forge(hs256, claims, testKey)
	parts := strings.Split(genuine, ".")
	for name, token := range map[string]string{
		"empty":              "",
		"no signature":       parts[0] + "." + parts[1] + ".",
		"two parts":          parts[0] + "." + parts[1],
		"other key":          forge(hs256, claims, otherKey),
		"alg none":           strings.TrimRight(forge(`{"alg":"none"}`, claims, testKey), "="),
		"alg none, unsigned": forge(`{"alg":"none"}`, claims, testKey)[:strings.LastIndex(forge(`{"alg":"none"}`, claims, testKey), ".")+1],
		"HS384":              signedWith(t, jwt.SigningMethodHS384, exp),
		"HS512":              signedWith(t, jwt.SigningMethodHS512, exp),
		"alg hs256":          forge(`{"alg":"hs256"}`, claims, testKey),
		"alg RS256":          forge(`{"alg":"RS256"}`, claims, testKey),
		"no alg":             forge(`{}`, claims, testKey),
		"other claims":       parts[0] + "." + strings.Split(forge(hs256, strings.Replace(claims, "42", "43", 1), otherKey), ".")[1] + "." + parts[2],
		"padded":             genuine + "=",
		"spare bits":         spareBits(genuine),
		"not base64":         parts[0] + ".$$$." + parts[2],
		"too long":           forge(hs256, fmt.Sprintf(`{"sub":"42","role":"user","exp":%d,"x":%q}`, exp, strings.Repeat("x", maxLength)), testKey),
		"no exp":             forge(hs256, `{"sub":"42","role":"user"}`, testKey),
		"exp null":           forge(hs256, `{"sub":"42","role":"user","exp":null}`, testKey),
		"not yet":            forge(hs256, fmt.Sprintf(`{"sub":"42","role":"user","exp":%d,"nbf":%d}`, exp, exp-60), testKey),
		"from the future":    forge(hs256, fmt.Sprintf(`{"sub":"42","role":"user","exp":%d,"iat":%d}`, exp, exp-60), testKey),
		"no sub":             forge(hs256, fmt.Sprintf(`{"role":"user","exp":%d}`, exp), testKey),
		"sub zero":           forge(hs256, fmt.Sprintf(`{"sub":"0","role":"user","exp":%d}`, exp), testKey),
		"sub negative":       forge(hs256, fmt.Sprintf(`{"sub":"-42","role":"user","exp":%d}`, exp), testKey),
		"sub spelt else":     forge(hs256, fmt.Sprintf(`{"sub":"042","role":"user","exp":%d}`, exp), testKey),
		"sub beyond":         forge(hs256, fmt.Sprintf(`{"sub":"9223372036854775808","role":"user","exp":%d}`, exp), testKey),
		"sub a name":         forge(hs256, fmt.Sprintf(`{"sub":"alice","role":"user","exp":%d}`, exp), testKey),
		"no role":            forge(hs256, fmt.Sprintf(`{"sub":"42","exp":%d}`, exp), testKey),
		"role root":          forge(hs256, fmt.Sprintf(`{"sub":"42","role":"root","exp":%d}`, exp), testKey),
		"role Admin":         forge(hs256, fmt.Sprintf(`{"sub":"42","role":"Admin","exp":%d}`, exp), testKey),
	} {
		if token == genuine {
			t.Errorf("%s: nothing was changed", name)
		}
		for range 2 { // a refused token must not be cached
			if got, err := v.Verify(token); !errors.Is(err, ErrInvalid) || got != (Claims{}) {
				t.Errorf("%s: %+v %v", name, got, err)
			}
		}
	}
}

// signedWith signs with the right key and another algorithm.
func signedWith(t *testing.T, method jwt.SigningMethod, exp int64) string {
	signed, err := jwt.NewWithClaims(method, jwt.MapClaims{"sub": "42", "role": "user", "exp": exp}).SignedString(testKey)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// spareBits changes the bits of the last character that base64 does not use: 32 bytes leave two.
func spareBits(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + string(alphabet[last^1])
}

func TestVerifier_ExpiryOfCachedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVerifier(t, Config{})
		signed := mustSign(t, testKey, Claims{User: 42, Role: User, Expires: time.Now().Add(time.Minute)})
		if _, err := v.Verify(signed); err != nil {
			t.Fatal(err)
		}
		if !v.cache.Contains(signed) {
			t.Fatal("the token is not cached: this test would show nothing")
		}
		time.Sleep(time.Minute + Leeway - time.Nanosecond)
		if _, err := v.Verify(signed); err != nil {
			t.Errorf("within the leeway: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := v.Verify(signed); !errors.Is(err, ErrExpired) {
			t.Errorf("cached and expired: %v", err)
		}
		if _, err := newVerifier(t, Config{}).Verify(signed); !errors.Is(err, ErrExpired) {
			t.Errorf("new and expired: %v", err)
		}
	})
}

func TestVerifier_RevocationOfCachedToken(t *testing.T) {
	asked, revoked := 0, false
	v := newVerifier(t, Config{Revoked: func(c Claims) bool {
		asked++
		if c.User != 42 || c.ID != "id" || c.Issued.IsZero() {
			t.Errorf("asked for %+v", c)
		}
		return revoked
	}})
	signed := mustSign(t, testKey, Claims{User: 42, Role: User, ID: "id", Expires: time.Now().Add(time.Minute)})
	for range 3 {
		if _, err := v.Verify(signed); err != nil {
			t.Fatal(err)
		}
	}
	revoked = true
	if got, err := v.Verify(signed); !errors.Is(err, ErrRevoked) || got != (Claims{}) || asked != 4 {
		t.Errorf("%+v %v after %d questions", got, err, asked)
	}
	revoked = false
	if _, err := v.Verify(signed); err != nil {
		t.Errorf("no longer revoked: %v", err)
	}
}

func TestVerifier_CacheIsBounded(t *testing.T) {
	v := newVerifier(t, Config{})
	used := mustSign(t, testKey, Claims{User: 42, Role: User, Expires: time.Now().Add(time.Hour)})
	for i := range cacheSize + 10 {
		v.cache.Add(fmt.Sprint(i), Claims{})
		if _, err := v.Verify(used); err != nil {
			t.Fatal(err)
		}
	}
	if v.cache.Len() != cacheSize || v.cache.Contains("0") || !v.cache.Contains(used) {
		t.Errorf("%d tokens are cached; the first: %v, the one in use: %v", v.cache.Len(), v.cache.Contains("0"), v.cache.Contains(used))
	}
}

func FuzzVerify(f *testing.F) {
	v := newVerifier(f, Config{})
	exp := time.Now().Add(time.Hour).Unix()
	f.Add(hs256, fmt.Sprintf(`{"sub":"42","role":"user","exp":%d}`, exp))
	f.Add(hs256, fmt.Sprintf(`{"sub":"42","role":"admin","exp":%d,"iat":1.5,"jti":"x"}`, exp))
	f.Add(`{"alg":"none"}`, `{"exp":1e999}`)
	// Whatever is signed with the key, Verify accepts only a positive user, a known role and a future expiry.
	f.Fuzz(func(t *testing.T, header, claims string) {
		got, err := v.Verify(forge(header, claims, testKey))
		if err != nil {
			if got != (Claims{}) {
				t.Errorf("claims beside the error %v", err)
			}
			return
		}
		if got.User < 1 || got.Role != User && got.Role != Admin || !time.Now().Before(got.Expires.Add(Leeway)) {
			t.Errorf("%+v", got)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	signed := mustSign(b, testKey, Claims{User: 42, Role: User, Expires: time.Now().Add(time.Hour)})
	v := newVerifier(b, Config{})
	for name, verify := range map[string]func(string) (Claims, error){"cached": v.Verify, "new": v.parse} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := verify(signed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
