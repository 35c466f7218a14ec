package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/handler/token"
	"seckill/service"
)

type tokenCmd struct {
	User   int64         `required:"" help:"Number of the user, from 1."`
	Admin  bool          `help:"The user may change vouchers and see the audit."`
	TTL    time.Duration `name:"ttl" default:"24h" help:"How long the token is valid."`
	JWTKey string        `name:"jwt-key" placeholder:"SECRET" help:"Key of the shop. Without it, the key of the embedded shop in --data."`
	Data   string        `default:"data" type:"path" placeholder:"DIR" help:"Directory of the embedded shop."`
}

// Help describes the command.
func (tokenCmd) Help() string {
	return `Prints a token for the header "Authorization: Bearer …". In production, your login service signs the tokens.`
}

// Run prints a token.
func (c *tokenCmd) Run(_ context.Context, out *cli.Output) error {
	if c.User < 1 {
		return errors.New("--user must be at least 1")
	}
	if c.TTL <= 0 {
		return errors.New("--ttl must be positive")
	}
	opts := app.Options{Servers: app.Servers{Data: c.Data}, API: app.API{JWTKey: c.JWTKey}}
	key, err := app.ReadTokenKey(&opts)
	if err != nil {
		return err
	}
	role := token.User
	if c.Admin {
		role = token.Admin
	}
	signed, err := token.Sign(key, token.Claims{User: service.UserID(c.User), Role: role, Expires: time.Now().Add(c.TTL)})
	if err != nil {
		return err
	}
	fmt.Fprintln(out.Stdout, signed)
	return nil
}
