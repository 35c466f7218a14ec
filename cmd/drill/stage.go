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
	dir     string // of generated files and journals
	secret  string // of this session's databases, and the key of its tokens
	built   map[bool]bool
	project *stage // that is up; nil for none
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
		docker: docker{transcript: transcript}, out: out, dir: dir, keep: keep, built: map[bool]bool{},
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
	key   string
	db    *repository.DB
	root  *sql.DB
	dirty bool // a drill failed on it, so that the next one would not know what it starts with
}

// stageFor returns a project that has what the turn needs, well and empty: the one that is up, or another.
func (s *session) stageFor(ctx context.Context, t *turn) (*stage, error) {
	if s.project != nil && s.project.key == t.key() && !s.project.dirty {
		if err := s.project.up(ctx); err != nil {
			return nil, err
		}
		return s.project, s.project.clean(ctx)
	}
	if err := s.leave(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	s.count++
	variables := map[string]string{
		"SECKILL_LOCK": t.lock, "SECKILL_JWT_KEY": s.secret,
		"SECKILL_MYSQL_PASSWORD": s.secret[:20], "SECKILL_MYSQL_ROOT_PASSWORD": s.secret[20:40], "SECKILL_RABBITMQ_PASSWORD": s.secret[40:],
	}
	p, err := newProject(ctx, s.docker, fmt.Sprintf("%s-%d", s.name, s.count), s.name, s.dir, t.needs.withLock(t.lock), variables)
	if err != nil {
		return nil, err
	}
	st := &stage{project: p, key: t.key()}
	if err := s.build(ctx, p, false); err != nil {
		return nil, err
	}
	if t.control != nil {
		if err := s.build(ctx, p, true); err != nil {
			return nil, err
		}
	}
	s.project = st // from here on there is something to be taken down
	begin := time.Now()
	if err := st.up(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(s.out, "  %d containers are up and well after %s (project %s)\n", len(st.containers), short(time.Since(begin)), p.name)
	return st, st.open(ctx, variables)
}

// build builds an image, unless this session has it already.
func (s *session) build(ctx context.Context, p *project, guardOff bool) error {
	if s.built[guardOff] {
		return nil
	}
	begin := time.Now()
	if err := p.build(ctx, guardOff); err != nil {
		return err
	}
	s.built[guardOff] = true
	fmt.Fprintf(s.out, "  the image %s was built in %s\n", p.image(guardOff), short(time.Since(begin)))
	return nil
}

// open connects to the database, as the shop does and as its administrator.
func (st *stage) open(ctx context.Context, variables map[string]string) (err error) {
	quiet := slog.New(slog.DiscardHandler) // that the database is away is what is being played
	dsn := func(user, password string) string {
		return fmt.Sprintf("%s:%s@tcp(%s)/seckill", user, password, st.ports[mysqlServer])
	}
	opts := app.Options{Servers: app.Servers{MySQLDSN: dsn("seckill", variables["SECKILL_MYSQL_PASSWORD"]), MySQLConns: 8}}
	if st.db, err = app.OpenDatabase(ctx, &opts, quiet); err != nil {
		return err
	}
	if st.root, err = sql.Open("mysql", dsn("root", variables["SECKILL_MYSQL_ROOT_PASSWORD"])); err != nil {
		return err
	}
	return st.root.PingContext(ctx)
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
	for guardOff := range s.built {
		_, failed := s.run(ctx, "image", "rm", "--force", s.name+":"+imageTag(guardOff))
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
