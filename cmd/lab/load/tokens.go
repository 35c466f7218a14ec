package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

// tokenFlags say where the users' tokens come from.
type tokenFlags struct {
	JWTKey    string `name:"jwt-key" placeholder:"SECRET" help:"Key of the shop, to sign tokens with. Without it, the key of the embedded shop in --data."`
	TokenFile string `type:"path" placeholder:"FILE" help:"File with signed tokens, one a line. Their users send the load in this order; one token may be an admin's."`
	Data      string `default:"data" type:"path" placeholder:"DIR" help:"Directory of the embedded shop."`
}

// users are the users whose tokens are available.
type users struct {
	token   func(user int64) string
	prepare func(first, users int64) // signs tokens before the load; nil: they are signed
	ids     []int64                  // nil: any user
	admin   int64                    // 0: none
}

// users reads the tokens, or the key to sign them.
func (f *tokenFlags) users() (*users, error) {
	if f.TokenFile != "" {
		return readTokens(f.TokenFile)
	}
	key, err := app.ReadTokenKey(&app.Options{Servers: app.Servers{Data: f.Data}, API: app.API{JWTKey: f.JWTKey}})
	if err != nil {
		return nil, err
	}
	tokens, err := cli.NewTokens(key)
	if err != nil {
		return nil, err
	}
	return &users{token: tokens.Of, prepare: tokens.Prepare, admin: cli.Admin}, nil
}

func readTokens(path string) (*users, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u := &users{}
	byUser := map[int64]string{}
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		user, isAdmin, err := parseToken(line)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", path, n+1, err)
		}
		byUser[user] = line
		if isAdmin {
			u.admin = user
		} else {
			u.ids = append(u.ids, user)
		}
	}
	if len(u.ids) == 0 {
		return nil, fmt.Errorf("%s: no token of a user", path)
	}
	u.token = func(user int64) string { return byUser[user] }
	return u, nil
}

// parseToken reads user and role of a token. The shop verifies the signature.
func parseToken(text string) (user int64, isAdmin bool, err error) {
	var claims struct {
		jwt.RegisteredClaims
		Role string `json:"role"`
	}
	if _, _, err := jwt.NewParser().ParseUnverified(text, &claims); err != nil {
		return 0, false, err
	}
	user, err = strconv.ParseInt(claims.Subject, 10, 64)
	if err != nil || user < 1 {
		return 0, false, fmt.Errorf("sub %q is not the number of a user", claims.Subject)
	}
	return user, claims.Role == "admin", nil
}
