package main

import (
	"context"
	"fmt"
	"net/http"
	"seckill/cmd/internal/cli"
	"time"
)

type healthCmd struct {
	URL     string        `name:"url" default:"http://127.0.0.1:8080/readyz" help:"Address to request."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// Run sends one request. The status must be 200.
func (c *healthCmd) Run(ctx context.Context, out *cli.Output) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	fmt.Fprintln(out.Stdout, answer.Status)
	if answer.StatusCode != http.StatusOK {
		return cli.ErrFailed
	}
	return nil
}
