package load

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

// loadTokens says where the tokens of a load's users come from.
type loadTokens struct {
	JWTKey    string `name:"jwt-key" placeholder:"SECRET" help:"Key of the shop, to sign tokens with. Without it, that of the embedded shop in --data."`
	TokenFile string `type:"path" placeholder:"FILE" help:"Tokens that somebody else has signed, one a line; their users are those of the load, in that order. One of an admin may be among them."`
	Data      string `default:"data" type:"path" placeholder:"DIR" help:"Directory of the embedded shop."`
}

// users are who a load can speak for.
type users struct {
	token   func(user int64) string
	prepare func(first, users int64) // signs tokens ahead; nil: they are all there
	ids     []int64                  // nil: everybody
	admin   int64                    // 0: none
}

// users reads the tokens, or makes ready to sign them.
func (t *loadTokens) users() (*users, error) {
	if t.TokenFile != "" {
		return readTokens(t.TokenFile)
	}
	key, err := app.ReadTokenKey(&app.Options{Servers: app.Servers{Data: t.Data}, API: app.API{JWTKey: t.JWTKey}})
	if err != nil {
		return nil, err
	}
	signer, err := cli.NewTokens(key)
	if err != nil {
		return nil, err
	}
	return &users{token: signer.Of, prepare: signer.Prepare, admin: cli.Admin}, nil
}

func readTokens(path string) (*users, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	u := &users{}
	byUser := map[int64]string{}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		user, isAdmin, err := readClaims(text)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", path, n, err)
		}
		byUser[user] = text
		if isAdmin {
			u.admin = user
		} else {
			u.ids = append(u.ids, user)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(u.ids) == 0 {
		return nil, fmt.Errorf("%s: has no token of a user", path)
	}
	u.token = func(user int64) string { return byUser[user] }
	return u, nil
}

// readClaims looks whose token it is; whether it is good is for the shop to say.
func readClaims(token string) (user int64, isAdmin bool, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return 0, false, errors.New("not a JSON Web Token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return 0, false, fmt.Errorf("not a JSON Web Token: %w", err)
	}
	var claims struct {
		Subject string `json:"sub"`
		Role    string `json:"role"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return 0, false, fmt.Errorf("not a JSON Web Token: %w", err)
	}
	user, err = strconv.ParseInt(claims.Subject, 10, 64)
	if err != nil || user < 1 {
		return 0, false, fmt.Errorf("its sub %q is not the number of a user", claims.Subject)
	}
	return user, claims.Role == "admin", nil
}
