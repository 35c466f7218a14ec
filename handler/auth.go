package handler

import (
	"errors"
	"net/http"
	"strings"

	"seckill/handler/token"
)

const bearer = "Bearer "

var (
	missingToken = unauthenticated(`Bearer realm="seckill"`, "send a token in the header Authorization: Bearer …")
	expiredToken = unauthenticated(invalidToken("expired"), "the token has expired; get a new one")
	revokedToken = unauthenticated(invalidToken("revoked"), "the token was revoked; get a new one")
	badToken     = unauthenticated(invalidToken("not valid here"), "the token is not one that this shop accepts")

	forbidden = func() *problem {
		p := newProblem(codeForbidden, "only an admin may do this")
		p.challenge = `Bearer realm="seckill", error="insufficient_scope", error_description="role admin needed"`
		return p
	}()
)

// invalidToken is the challenge of RFC 6750, section 3.
func invalidToken(why string) string {
	return `Bearer realm="seckill", error="invalid_token", error_description="` + why + `"`
}

func unauthenticated(challenge, detail string) *problem {
	p := newProblem(codeUnauthenticated, detail)
	p.challenge = challenge
	return p
}

// authenticate finds out who sent a request.
func (h *Handler) authenticate(r *http.Request) (token.Claims, error) {
	values := r.Header["Authorization"]
	if len(values) != 1 || len(values[0]) < len(bearer) || !strings.EqualFold(values[0][:len(bearer)], bearer) {
		return token.Claims{}, missingToken
	}
	claims, err := h.tokens.Verify(values[0][len(bearer):])
	switch {
	case err == nil:
		return claims, nil
	case errors.Is(err, token.ErrExpired):
		return claims, expiredToken
	case errors.Is(err, token.ErrRevoked):
		return claims, revokedToken
	default:
		return claims, badToken
	}
}
