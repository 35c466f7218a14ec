package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/compose"
)

// composeFile is what drills break.
const composeFile = "docker-compose.yml"

// A shop without its guard has this build tag, and serves only if the variable is set.
const (
	guardOffTag      = "seckill_guard_off"
	guardOffVariable = "SECKILL_GUARD_OFF"
)

// session is one call of this program. It builds the images once, and brings up one cluster at a time.
type session struct {
	docker   *compose.Docker
	out      io.Writer
	name     string
	dir      string // for generated files and journals
	secret   string // passwords of the databases, and the key of the tokens
	tokens   *cli.Tokens
	built    map[string]bool // by build tags
	cluster  *cluster        // that is up; nil: none
	clusters int             // brought up so far
	keep     bool
}

func newSession(ctx context.Context, out io.Writer, keep bool) (s *session, err error) {
	s = &session{
		out: out, keep: keep, built: map[string]bool{},
		name: "seckill-drill-" + strings.ToLower(rand.Text()[:6]), secret: rand.Text() + rand.Text(),
	}
	if s.tokens, err = cli.NewTokens([]byte(s.secret)); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "seckill-drill-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	}()
	transcript, err := os.Create(filepath.Join(s.dir, "docker.log"))
	if err != nil {
		return nil, err
	}
	s.docker = &compose.Docker{Transcript: transcript}
	if err := s.docker.Available(ctx); err != nil {
		return nil, err
	}
	s.docker.Env, err = compose.GoBuildEnv(ctx)
	if _, set := os.LookupEnv("SECKILL_BUILD_NETWORK"); !set {
		s.docker.Env = append(s.docker.Env, "SECKILL_BUILD_NETWORK=host")
	}
	return s, err
}

// image is the name of the shop's image with these build tags.
func (s *session) image(tags string) string {
	if tags == "" {
		tags = "shop"
	}
	return s.name + ":" + tags
}

// clusterFor returns a healthy and empty cluster that has what the turn needs: the one that is up, configured again, or a
// new one if a drill has failed on it.
func (s *session) clusterFor(ctx context.Context, t *drillRun) (*cluster, error) {
	if s.cluster != nil && s.cluster.dirty {
		if err := s.takeDown(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	isNew := s.cluster == nil
	if isNew {
		if err := s.openCluster(ctx); err != nil {
			return nil, err
		}
	}
	c := s.cluster
	env := map[string]string{"SECKILL_LOCK": t.lock}
	maps.Copy(env, t.needs.env)
	err := c.Configure(compose.Config{Profiles: profiles(t.lock), Image: s.image(t.needs.tags), Env: env, Overlay: t.needs.overlay})
	if err != nil {
		return nil, err
	}
	if err := s.buildFor(ctx, t); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := c.Up(ctx); err != nil {
		return nil, err
	}
	if !isNew {
		return c, c.clean(ctx)
	}
	fmt.Fprintf(s.out, "  %d containers are healthy after %s (project %s)\n", c.Containers(), cli.Short(time.Since(begin)), c.Name)
	return c, c.connect(ctx)
}

// openCluster prepares a new project. From then on there is something to take down.
func (s *session) openCluster(ctx context.Context) error {
	s.clusters++
	passwords := map[string]string{"seckill": s.secret[:20], "root": s.secret[20:40]}
	project, err := compose.Open(ctx, s.docker, compose.Options{
		Name: fmt.Sprintf("%s-%d", s.name, s.clusters), File: composeFile, Dir: s.dir, Image: s.image(""), Ports: publishedPorts,
		Variables: map[string]string{
			"SECKILL_IMAGE": s.image(""), "SECKILL_JWT_KEY": s.secret, "SECKILL_MYSQL_PASSWORD": passwords["seckill"],
			"SECKILL_MYSQL_ROOT_PASSWORD": passwords["root"], "SECKILL_RABBITMQ_PASSWORD": s.secret[40:],
		},
	})
	if err != nil {
		return err
	}
	s.cluster = &cluster{Project: project, passwords: passwords}
	return nil
}

// buildFor builds the images of a run that this session does not have yet.
func (s *session) buildFor(ctx context.Context, t *drillRun) error {
	needed := []string{t.needs.tags}
	if t.control {
		needed = append(needed, guardOffTag)
	}
	for _, tags := range needed {
		if s.built[tags] {
			continue
		}
		begin := time.Now()
		if err := s.cluster.Build(ctx, s.image(tags), "SECKILL_BUILD_TAGS="+tags); err != nil {
			return err
		}
		s.built[tags] = true
		fmt.Fprintf(s.out, "  the image %s was built in %s\n", s.image(tags), cli.Short(time.Since(begin)))
	}
	return nil
}

// withoutGuard replaces the shop's instances by those of a shop without its guard, on empty tables.
func (s *session) withoutGuard(ctx context.Context) error {
	c := s.cluster
	if err := c.Up(ctx); err != nil {
		return err
	}
	if err := c.clean(ctx); err != nil {
		return err
	}
	config := c.Config()
	config.Image, config.Env = s.image(guardOffTag), maps.Clone(config.Env)
	config.Env[guardOffVariable] = "oversell"
	if err := c.Configure(config); err != nil {
		return err
	}
	return c.Up(ctx)
}

// takeDown takes the cluster down.
func (s *session) takeDown(ctx context.Context) error {
	c := s.cluster
	if c == nil {
		return nil
	}
	s.cluster = nil
	var errs []error
	if c.db != nil {
		errs = append(errs, c.db.Close())
	}
	if c.root != nil {
		errs = append(errs, c.root.Close())
	}
	if s.keep {
		fmt.Fprintf(s.out, "  project %s stays up: http://%s; docker compose --project-name %s down --volumes takes it down\n", c.Name, c.Addr(gateway), c.Name)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, c.Down(ctx))...)
}

// close takes everything down and removes what was made, also after an interruption.
func (s *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	err := s.takeDown(ctx)
	if s.keep {
		fmt.Fprintf(s.out, "  journals and the transcript of Docker are in %s\n", s.dir)
		return err
	}
	for tags := range s.built {
		_, failed := s.docker.Run(ctx, "image", "rm", "--force", s.image(tags))
		err = errors.Join(err, failed)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
