// Package ids measures why ids are made the way they are: what buffers save, what a primary key costs InnoDB, and what a
// segment size that follows demand gains.
package ids

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/report"
	"seckill/repository"
	"seckill/repository/ids/redisids"
	"seckill/repository/lock/redislock"
	"seckill/service/idgen"
)

// Command is the experiment's command line.
type Command struct {
	app.Servers `embed:"" group:"Servers"`
	Only        []string `enum:"refill,keys,step" default:"refill,keys,step" placeholder:"NAME,…" help:"Which experiments: ${enum}."`
	HTML        string   `name:"html" placeholder:"FILE" help:"Write a page with tables and charts."`
	JSON        bool     `name:"json" help:"Print everything as one JSON object."`
}

// Help describes the experiments.
func (Command) Help() string {
	return `refill: an INCR for each id, a single buffer, a double buffer: how long calls wait, over time.
keys: what the primary key costs InnoDB: auto-increment, snowflake, UUIDv7, UUIDv4 as text and as bytes.
step: a segment size that follows demand, against fixed sizes, under a load that rises a hundredfold and falls again.

It takes about two minutes and uses the servers fully. Give it a separate database: it creates tables there.`
}

// Result has the results of the experiments that ran.
type Result struct {
	Server string        `json:"server"` // the database's version
	Refill *RefillResult `json:"refill,omitempty"`
	Keys   *KeysResult   `json:"keys,omitempty"`
	Step   *StepResult   `json:"step,omitempty"`
}

// Run runs the experiments and prints their results.
func (c *Command) Run(ctx context.Context, out *cli.Output) error {
	switch {
	case c.Embedded():
		return errors.New("--mysql-dsn is required: these experiments measure a real server")
	case slices.Contains(c.Only, "refill") && len(c.RedisAddrs) == 0:
		return errors.New("--redis-addrs is required for refill; use --only=keys,step without Redis")
	}
	fmt.Fprintln(out.Stderr, "measuring; this takes a while")
	result, err := c.measure(ctx, out)
	if err != nil {
		return err
	}
	measuredOn := cli.ThisMachine().Describe(result.Server)
	sections := result.sections()
	if c.HTML != "" {
		page := report.Page{
			Title:    "Why ids are made the way they are",
			Sections: append(slices.Clone(sections), report.Section{Title: "Measured on", Notes: []string{measuredOn}}),
		}
		if err := page.WriteFile(c.HTML); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(out.Stdout).Encode(result)
	}
	for _, section := range sections {
		fmt.Fprintf(out.Stdout, "%s\n\n", section.Title)
		if err := cli.PrintTable(out.Stdout, section.Table); err != nil {
			return err
		}
		fmt.Fprintln(out.Stdout)
	}
	fmt.Fprintln(out.Stdout, measuredOn)
	return nil
}

// measure runs the experiments that --only names.
func (c *Command) measure(ctx context.Context, out *cli.Output) (result Result, err error) {
	db, err := app.OpenDatabase(ctx, &app.Options{Servers: c.Servers}, out.Logger("warn", "text"))
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Migrate(ctx); err != nil {
		return result, err
	}
	result.Server = db.Version()
	ranges := db.IDRanges(repository.OrderIDs)
	if slices.Contains(c.Only, "refill") {
		if result.Refill, err = c.refill(ctx, ranges); err != nil {
			return result, fmt.Errorf("refill: %w", err)
		}
	}
	if slices.Contains(c.Only, "keys") {
		if result.Keys, err = c.keys(ctx, db); err != nil {
			return result, fmt.Errorf("keys: %w", err)
		}
	}
	if slices.Contains(c.Only, "step") {
		if result.Step, err = Step(ctx, StepConfig{Ranges: ranges}); err != nil {
			return result, fmt.Errorf("step: %w", err)
		}
	}
	return result, nil
}

func (c *Command) refill(ctx context.Context, ranges *repository.IDRanges) (result *RefillResult, err error) {
	client, err := redislock.NewClient(c.RedisConfig(c.RedisAddrs))
	if err != nil {
		return nil, err
	}
	const key = "ids:lab"
	defer func() {
		err = errors.Join(err, client.Del(context.WithoutCancel(ctx), key, key+":single").Err(), client.Close())
	}()
	store := redisids.New(client, key, ranges)
	if _, err := store.Restore(ctx); err != nil {
		return nil, err
	}
	return Refill(ctx, RefillConfig{
		Incr:   func(ctx context.Context) error { return client.Incr(ctx, key+":single").Err() },
		Ranges: store,
	})
}

func (c *Command) keys(ctx context.Context, db *repository.DB) (result *KeysResult, err error) {
	snowflake, err := idgen.NewSnowflake(ctx, db.WorkerLeases())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snowflake.Close(context.WithoutCancel(ctx))) }()
	pool, err := sql.Open("mysql", c.MySQLDSN)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return Keys(ctx, KeysConfig{DB: pool, Snowflake: snowflake})
}
