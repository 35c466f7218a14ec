package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/cmd/internal/app"
	"seckill/handler/token"
	"seckill/repository"
	"seckill/service"
)

// session is one call of this program: the images are built once, and a project after the other is brought up.
type session struct {
	docker
	out     io.Writer
	name    string
	dir     string          // of generated files and journals
	secret  string          // of this session's databases, and the key of its tokens
	built   map[string]bool // by their build tags
	project *stage          // that is up; nil for none
	count   int
	keep    bool

	tokens sync.Map // of users, signed once
}

// adminUser is who puts vouchers on sale.
const adminUser = 1

func newSession(ctx context.Context, out io.Writer, keep bool) (*session, error) {
	dir, err := os.MkdirTemp("", "seckill-drill-")
	if err != nil {
		return nil, err
	}
	transcript, err := os.Create(dir + "/docker.log")
	if err != nil {
		return nil, err
	}
	s := &session{
		docker: docker{transcript: transcript}, out: out, dir: dir, keep: keep, built: map[string]bool{},
		name: "seckill-drill-" + strings.ToLower(rand.Text()[:6]), secret: rand.Text() + rand.Text(),
	}
	if err := s.available(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.env, err = buildEnv(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// token signs the tokens of users.
func (s *session) token(user int64) string {
	if known, ok := s.tokens.Load(user); ok {
		return known.(string)
	}
	role := token.User
	if user == adminUser {
		role = token.Admin
	}
	signed, err := token.Sign([]byte(s.secret), token.Claims{User: service.UserID(user), Role: role, Expires: time.Now().Add(24 * time.Hour)})
	if err != nil {
		panic(err) // users are positive, and the key is long enough
	}
	s.tokens.Store(user, signed)
	return signed
}

// stage is a project that is up, and how drills get at it.
type stage struct {
	*project
	passwords map[string]string // of the database's users
	db        *repository.DB
	root      *sql.DB
	dirty     bool // a drill failed on it, so that the next one would not know what it starts with
}

// stageFor returns a project that has what the turn needs, well and empty: the one that is up, if nothing is wrong with
// it, with other settings if need be; otherwise a new one.
func (s *session) stageFor(ctx context.Context, t *turn) (*stage, error) {
	if s.project != nil && s.project.dirty {
		if err := s.leave(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	fresh := s.project == nil
	if fresh {
		if err := s.prepare(ctx); err != nil {
			return nil, err
		}
	}
	st := s.project
	if err := st.configure(t.needs.withLock(t.lock), t.lock); err != nil {
		return nil, err
	}
	if err := s.buildFor(ctx, st.project, t); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := st.up(ctx); err != nil {
		return nil, err
	}
	if !fresh {
		return st, st.clean(ctx)
	}
	fmt.Fprintf(s.out, "  %d containers are up and well after %s (project %s)\n", len(st.containers), short(time.Since(begin)), st.name)
	return st, st.open(ctx)
}

// prepare makes a project ready to be brought up.
func (s *session) prepare(ctx context.Context) error {
	s.count++
	st := &stage{passwords: map[string]string{"seckill": s.secret[:20], "root": s.secret[20:40]}}
	var err error
	st.project, err = newProject(ctx, s.docker, fmt.Sprintf("%s-%d", s.name, s.count), s.name, s.dir, map[string]string{
		"SECKILL_JWT_KEY": s.secret, "SECKILL_MYSQL_PASSWORD": st.passwords["seckill"], "SECKILL_MYSQL_ROOT_PASSWORD": st.passwords["root"],
		"SECKILL_RABBITMQ_PASSWORD": s.secret[40:],
	})
	if err != nil {
		return err
	}
	s.project = st // from here on there may be something to be taken down
	return nil
}

// buildFor builds the images of a turn.
func (s *session) buildFor(ctx context.Context, p *project, t *turn) error {
	if err := s.build(ctx, p, t.needs.tags); err != nil || t.control == nil {
		return err
	}
	return s.build(ctx, p, guardOffTag)
}

// build builds an image, unless this session has it already.
func (s *session) build(ctx context.Context, p *project, tags string) error {
	if s.built[tags] {
		return nil
	}
	begin := time.Now()
	if err := p.build(ctx, tags); err != nil {
		return err
	}
	s.built[tags] = true
	fmt.Fprintf(s.out, "  the image %s was built in %s\n", p.image(tags), short(time.Since(begin)))
	return nil
}

// open connects to the database, as the shop does and as its administrator.
func (st *stage) open(ctx context.Context) (err error) {
	opts := app.Options{Servers: app.Servers{MySQLDSN: st.dsn("seckill").FormatDSN(), MySQLConns: 8}}
	quiet := slog.New(slog.DiscardHandler) // that the database is away is what is being played
	if st.db, err = app.OpenDatabase(ctx, &opts, quiet); err != nil {
		return err
	}
	connector, err := mysql.NewConnector(st.dsn("root"))
	if err != nil {
		return err
	}
	st.root = sql.OpenDB(connector)
	return st.root.PingContext(ctx)
}

// dsn says how to get at the database as a user.
func (st *stage) dsn(user string) *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", st.ports[mysqlServer], "seckill"
	cfg.User, cfg.Passwd = user, st.passwords[user]
	cfg.Logger = &mysql.NopLogger{} // what it would print comes back as errors
	return cfg
}

// clean empties the tables that a drill has filled, so that each ledger is of one drill alone.
func (st *stage) clean(ctx context.Context) error {
	for _, table := range []string{
		"voucher_order", "outbox_event", "payment", "consume_record", "points_entry", "voucher_restock", "voucher_stock", "voucher",
	} {
		if _, err := st.root.ExecContext(ctx, "TRUNCATE TABLE "+table); err != nil {
			return fmt.Errorf("empty %s: %w", table, err)
		}
	}
	return nil
}

// leave takes down what is up.
func (s *session) leave(ctx context.Context) error {
	st := s.project
	if st == nil {
		return nil
	}
	s.project = nil
	var errs []error
	if st.db != nil {
		errs = append(errs, st.db.Close())
	}
	if st.root != nil {
		errs = append(errs, st.root.Close())
	}
	if s.keep {
		fmt.Fprintf(s.out, "  project %s stays up: http://%s; docker compose --project-name %s down --volumes takes it down\n", st.name, st.ports[gateway], st.name)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, st.down(ctx))...)
}

// close takes everything down and removes what was made. It does not heed that the session was interrupted.
func (s *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*downTime)
	defer cancel()
	err := s.leave(ctx)
	if s.keep {
		fmt.Fprintf(s.out, "  journals and docker's transcript are in %s\n", s.dir)
		return err
	}
	for tags := range s.built {
		_, failed := s.run(ctx, "image", "rm", "--force", s.name+":"+imageTag(tags))
		err = errors.Join(err, failed)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// get asks for a page of an instance, at most for a second.
func get(ctx context.Context, url string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	request.Close = true // a connection of before a fault would say nothing about what is after it
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, string(text), err
}
