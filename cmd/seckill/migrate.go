package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/repository"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply pending migrations. Several processes may do so at the same time."`
	Status migrateStatusCmd `cmd:"" help:"List all migrations; status 1 if some are pending."`
}

// databaseFlags are for commands that need the database alone.
type databaseFlags struct {
	MySQLDSN string `name:"mysql-dsn" placeholder:"USER:PASS@tcp(HOST:3306)/DB" help:"MySQL 8.4+ or MariaDB 10.6+. Without it, the embedded database."`
	Data     string `default:"data" type:"path" placeholder:"DIR" help:"Directory of the embedded database."`
	app.Log  `embed:"" group:"Log"`
}

// open opens an existing database. The caller closes it.
func (f *databaseFlags) open(ctx context.Context, out *cli.Output) (*repository.DB, error) {
	return app.OpenExistingDatabase(ctx, f.options(), out.Logger(f.Log.LogLevel, f.Log.LogFormat))
}

func (f *databaseFlags) options() *app.Options {
	return &app.Options{Servers: app.Servers{MySQLDSN: f.MySQLDSN, Data: f.Data}}
}

type migrateUpCmd struct{ databaseFlags }

// Run applies pending migrations.
func (c *migrateUpCmd) Run(ctx context.Context, out *cli.Output) (err error) {
	db, err := app.OpenDatabase(ctx, c.options(), out.Logger(c.Log.LogLevel, c.Log.LogFormat)) // creates an embedded database
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	done, err := db.Migrate(ctx)
	for _, m := range done {
		fmt.Fprintf(out.Stdout, "applied %s\n", m.Name)
	}
	if err == nil && len(done) == 0 {
		fmt.Fprintln(out.Stdout, "nothing to do")
	}
	return err
}

type migrateStatusCmd struct{ databaseFlags }

// Run lists all migrations.
func (c *migrateStatusCmd) Run(ctx context.Context, out *cli.Output) (err error) {
	db, err := c.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	steps, err := db.Migrations(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	pending := false
	for _, m := range steps {
		state := "pending"
		if m.AppliedAt.IsZero() {
			pending = true
		} else {
			state = "applied " + m.AppliedAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\n", m.Name, state)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if pending {
		return cli.ErrFailed
	}
	return nil
}
