package token

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill/service"
)

// TestOwnTokensAreRecognized: what Sign makes takes the short way, and means there what it means to the parser.
func TestOwnTokensAreRecognized(t *testing.T) {
	v := newVerifier(t, Config{Keys: [][]byte{otherKey, testKey}})
	for _, c := range []Claims{
		{User: 1, Role: Admin, Expires: time.Now().Add(time.Minute)},
		{User: 1<<63 - 1, Role: User, ID: strings.Repeat("x", 64), Issued: time.Now().Add(-time.Hour), Expires: time.Now().Add(Leeway)},
	} {
		signed := mustSign(t, testKey, c)
		own, ok := v.parseOwn(signed)
		if !ok {
			t.Errorf("%+v is not recognized", c)
		}
		if any, err := v.parseAny(signed); err != nil || any != own {
			t.Errorf("%+v is %+v to the parser: %v", own, any, err)
		}
		for i := range len(signed) {
			changed := signed[:i] + string(signed[i]^1) + signed[i+1:]
			if own, ok := v.parseOwn(changed); ok {
				t.Errorf("byte %d changed: accepted as %+v", i, own)
			}
		}
	}
	for name, c := range map[string]Claims{
		"expired":     {User: 1, Role: User, Issued: time.Now().Add(-time.Hour), Expires: time.Now().Add(-Leeway)},
		"from future": {User: 1, Role: User, Issued: time.Now().Add(time.Minute), Expires: time.Now().Add(time.Hour)},
	} {
		if own, ok := v.parseOwn(mustSign(t, testKey, c)); ok {
			t.Errorf("%s: accepted as %+v", name, own)
		}
	}
}

// FuzzOwn holds the short way against the library: it may accept less, and nothing else.
func FuzzOwn(f *testing.F) {
	v := newVerifier(f, Config{})
	now := time.Now()
	f.Add(fmt.Sprintf(`{"role":"user","sub":"42","exp":%d,"iat":%d,"jti":"x"}`, now.Add(time.Hour).Unix(), now.Unix()), "")
	f.Add(fmt.Sprintf(`{"role":"admin","sub":"042","exp":%d,"iat":1.5,"jti":null,"jti":"x"}`, now.Unix()), "A")
	f.Add(`{"role":"user","sub":"1","exp":9007199254740993,"iat":1,"jti":"\u0041","nbf":9007199254740993}`, "=")
	f.Fuzz(func(t *testing.T, claims, tail string) {
		token := forge(hs256, claims, testKey) + tail
		own, ok := v.parseOwn(token)
		if !ok {
			return
		}
		any, err := v.parseAny(token)
		if err != nil || any != own || own.User < 1 {
			t.Errorf("%q: %+v, and by the library %+v, %v", claims, own, any, err)
		}
	})
}

// BenchmarkParse compares both ways for a token that was never seen.
func BenchmarkParse(b *testing.B) {
	signed := mustSign(b, testKey, Claims{User: service.UserID(42), Role: User, Expires: time.Now().Add(time.Hour)})
	v := newVerifier(b, Config{})
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := v.parseOwn(signed); !ok {
				b.Fatal("refused")
			}
		}
	})
	b.Run("any", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.parseAny(signed); err != nil {
				b.Fatal(err)
			}
		}
	})
}
