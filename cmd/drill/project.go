package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// project is docker-compose.yml under a name of its own: its containers, networks, volumes, ports and images are no
// other project's, and all of them go when it is taken down.
type project struct {
	docker
	name       string
	images     string // the name of the shop's images, without their tags
	tags       string // build tags of the shop; "" for the one that everybody gets
	override   string // path of the generated file
	overlay    string // path of what a drill changes besides; "" for nothing
	profiles   []string
	lock       string            // that the shop uses
	env        map[string]string // of the shop's containers, beside what the file says
	services   map[string]composeService
	networks   map[string]string // the name that docker knows, by the one in the file
	ports      map[string]string // loopback address of a service, by its name
	containers map[string]string // ids, by service
}

// composeService is what matters here of a service in docker-compose.yml.
type composeService struct {
	Image string          `json:"image"`
	Build json.RawMessage `json:"build"`
	Ports []struct {
		Target int `json:"target"`
	} `json:"ports"`
}

// The ports inside the containers that drills speak to.
var drillPorts = map[string]int{shop1: 8080, shop2: 8080, eventsConsumer: 8080, mysqlServer: 3306}

// newProject reads docker-compose.yml and writes what a drill changes about it: images of its own name, and ports that
// are free on this machine. variables are those of the file.
func newProject(ctx context.Context, d docker, name, images, dir string, variables map[string]string) (*project, error) {
	p := &project{docker: d, name: name, images: images, override: filepath.Join(dir, name+".yml")}
	p.docker.env = slices.Clone(d.env)
	for key, value := range variables {
		p.docker.env = append(p.docker.env, key+"="+value)
	}
	p.docker.env = append(p.docker.env, "SECKILL_IMAGE="+p.image(""))
	text, err := p.compose(ctx, "--profile", "*", "config", "--format", "json")
	if err != nil {
		return nil, err
	}
	var config struct {
		Services map[string]composeService `json:"services"`
		Networks map[string]struct {
			Name string `json:"name"`
		} `json:"networks"`
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return nil, fmt.Errorf("docker compose config: %w", err)
	}
	p.services, p.networks = config.Services, map[string]string{}
	for key, network := range config.Networks {
		p.networks[key] = network.Name
	}
	for _, name := range []string{gateway, shop1, shop2, mysqlServer} {
		if _, ok := p.services[name]; !ok {
			return nil, fmt.Errorf("%s has no service %q: run this in the root of the repository", composeFile, name)
		}
	}
	if err := p.choosePorts(); err != nil {
		return nil, err
	}
	return p, nil
}

// configure sets what the next drills need. What runs stays as it is until up.
func (p *project) configure(n needs, lock string) error {
	p.lock, p.env, p.tags, p.overlay = lock, n.env, n.tags, ""
	for _, profile := range n.profiles { // what was needed before may stay
		if !slices.Contains(p.profiles, profile) {
			p.profiles = append(p.profiles, profile)
		}
	}
	if n.overlay != "" {
		p.overlay = strings.TrimSuffix(p.override, ".yml") + "-overlay.yml"
		if err := os.WriteFile(p.overlay, []byte(n.overlay), 0o600); err != nil {
			return err
		}
	}
	return p.writeOverride(p.image(p.tags))
}

// image is the name of the shop's image that was built with the tags.
func (p *project) image(tags string) string { return p.images + ":" + imageTag(tags) }

func imageTag(tags string) string {
	if tags == "" {
		return "shop"
	}
	return tags
}

// choosePorts finds a free loopback port for each service that drills speak to. Somebody else may take it before
// docker does; then bringing the project up fails and says so.
func (p *project) choosePorts() error {
	p.ports = map[string]string{}
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, service := range append(slices.Sorted(maps.Keys(drillPorts)), gateway) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		held = append(held, l)
		p.ports[service] = l.Addr().String()
	}
	return nil
}

// writeOverride writes the file that is laid over docker-compose.yml: the shop's containers run an image, and no service
// publishes a port but those that drills speak to.
func (p *project) writeOverride(image string) error {
	var b strings.Builder
	b.WriteString("services:\n")
	for _, name := range slices.Sorted(maps.Keys(p.services)) {
		fmt.Fprintf(&b, "  %s:\n", name)
		if target := p.target(name); target != 0 {
			fmt.Fprintf(&b, "    ports: !override [%q]\n", fmt.Sprintf("%s:%d", p.ports[name], target))
		} else {
			b.WriteString("    ports: !override []\n")
		}
		if !p.isShop(name) {
			continue
		}
		fmt.Fprintf(&b, "    image: %s\n    pull_policy: never\n    environment:\n      SECKILL_LOCK: %s\n", image, p.lock)
		for _, key := range slices.Sorted(maps.Keys(p.env)) {
			fmt.Fprintf(&b, "      %s: %q\n", key, p.env[key])
		}
	}
	return os.WriteFile(p.override, []byte(b.String()), 0o600)
}

// isShop tells whether a service runs the shop's own image.
func (p *project) isShop(service string) bool { return p.services[service].Image == p.image("") }

// target is the port inside the container that drills speak to; 0 for none.
func (p *project) target(service string) int {
	if service == gateway && len(p.services[gateway].Ports) > 0 {
		return p.services[gateway].Ports[0].Target
	}
	return drillPorts[service]
}

// compose runs docker compose for this project.
func (p *project) compose(ctx context.Context, args ...string) (string, error) {
	all := []string{"compose", "--ansi=never", "--progress=plain", "--project-name", p.name, "--file", composeFile}
	if _, err := os.Stat(p.override); err == nil {
		all = append(all, "--file", p.override)
	}
	if p.overlay != "" {
		all = append(all, "--file", p.overlay)
	}
	for _, profile := range p.profiles {
		all = append(all, "--profile", profile)
	}
	return p.run(ctx, append(all, args...)...)
}

// composeFile is what drills break.
const composeFile = "docker-compose.yml"

// How long things may take that depend on the machine and its network.
const (
	buildTime = 15 * time.Minute
	upTime    = 5 * time.Minute
	downTime  = 2 * time.Minute
)

// build builds the shop's image with the tags.
func (p *project) build(ctx context.Context, tags string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	builder := ""
	for _, name := range slices.Sorted(maps.Keys(p.services)) {
		if len(p.services[name].Build) > 0 && p.isShop(name) {
			builder = name
		}
	}
	if builder == "" {
		return fmt.Errorf("no service in %s builds the shop's image", composeFile)
	}
	tagged := *p
	tagged.docker.env = append(slices.Clone(p.docker.env), "SECKILL_BUILD_TAGS="+tags)
	if tags != p.tags {
		if err := p.writeOverride(p.image(tags)); err != nil {
			return err
		}
		defer func() { _ = p.writeOverride(p.image(p.tags)) }() // it has just been written
	}
	_, err := tagged.compose(ctx, "build", builder)
	return err
}

// up starts everything that is not running and waits until all of it is healthy.
func (p *project) up(ctx context.Context, services ...string) error {
	ctx, cancel := context.WithTimeout(ctx, upTime)
	defer cancel()
	if _, err := p.compose(ctx, append([]string{"up", "--detach", "--wait", "--no-build", "--quiet-pull"}, services...)...); err != nil {
		return errors.Join(err, errors.New(p.troubled(context.WithoutCancel(ctx))))
	}
	return p.look(ctx)
}

// troubled shows the last words of containers that are not well.
func (p *project) troubled(ctx context.Context) string {
	listed, err := p.compose(ctx, "ps", "--all", "--format", "{{.Service}} {{.State}} {{.Health}} {{.ExitCode}}")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for line := range strings.Lines(listed) {
		f := append(strings.Fields(line), "", "", "")
		if (f[1] == "running" && f[2] != "unhealthy" && f[2] != "starting") || strings.TrimSpace(line) == f[0]+" exited 0" {
			continue
		}
		logs, _ := p.compose(ctx, "logs", "--no-color", "--tail=8", f[0])
		fmt.Fprintf(&b, "%s\n%s\n", strings.TrimSpace(line), logs)
	}
	return b.String()
}

// look finds out which container is whose.
func (p *project) look(ctx context.Context) error {
	listed, err := p.compose(ctx, "ps", "--all", "--no-trunc", "--format", "{{.Service}} {{.ID}}")
	if err != nil {
		return err
	}
	p.containers = map[string]string{}
	for line := range strings.Lines(listed) {
		if f := strings.Fields(line); len(f) == 2 {
			p.containers[f[0]] = f[1]
		}
	}
	return nil
}

// down removes everything of the project but its images.
func (p *project) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, downTime)
	defer cancel()
	// Nothing in them is wanted any more, and a paused one would not hear of a polite request.
	var errs []error
	if ids, err := p.run(ctx, "ps", "--all", "--quiet", "--filter", "label=com.docker.compose.project="+p.name); err != nil {
		errs = append(errs, err)
	} else if ids != "" {
		_, err := p.run(ctx, append([]string{"rm", "--force", "--volumes"}, strings.Fields(ids)...)...)
		errs = append(errs, err)
	}
	_, err := p.compose(ctx, "down", "--volumes", "--remove-orphans", "--timeout", "5")
	errs = append(errs, err)
	return errors.Join(errs...)
}

// container is the id of a service's container.
func (p *project) container(service string) (string, error) {
	if id, ok := p.containers[service]; ok {
		return id, nil
	}
	return "", fmt.Errorf("there is no container of service %q", service)
}
