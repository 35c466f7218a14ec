package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options describe a project.
type Options struct {
	Name      string            // of the project
	File      string            // the compose file
	Dir       string            // for generated files
	Image     string            // of the services that the project builds
	Variables map[string]string // of the compose file
	// Ports are the only published ones: a container's port by service, 0 for the port that the file publishes. Addr
	// returns the free loopback address that each of them gets.
	Ports map[string]int
}

// Config is what may change while the project is up.
type Config struct {
	Profiles []string          // added to those of earlier configurations
	Image    string            // runs in the services of Options.Image
	Env      map[string]string // of these services
	Overlay  string            // YAML that is laid over the compose file; "" for none
}

// Project is a compose file under a separate name.
type Project struct {
	*Docker
	Options
	config     Config
	env        []string // variables of the file
	services   map[string]service
	networks   map[string]string // Docker's name, by the name in the file
	addrs      map[string]string // by service
	containers map[string]string // ids, by service
}

// service is the part of a service's definition that matters here.
type service struct {
	Image string          `json:"image"`
	Build json.RawMessage `json:"build"`
	Ports []struct {
		Target int `json:"target"`
	} `json:"ports"`
}

// Timeouts of steps that depend on the machine and its network.
const (
	BuildTimeout = 15 * time.Minute
	upTimeout    = 5 * time.Minute
	downTimeout  = 2 * time.Minute
)

// Open reads the compose file and chooses ports. Nothing runs before Up.
func Open(ctx context.Context, d *Docker, o Options) (*Project, error) {
	p := &Project{Docker: d, Options: o, networks: map[string]string{}}
	for key, value := range o.Variables {
		p.env = append(p.env, key+"="+value)
	}
	text, err := p.compose(ctx, nil, "--profile", "*", "config", "--format", "json")
	if err != nil {
		return nil, err
	}
	var config struct {
		Services map[string]service `json:"services"`
		Networks map[string]struct {
			Name string `json:"name"`
		} `json:"networks"`
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return nil, fmt.Errorf("docker compose config: %w", err)
	}
	p.services = config.Services
	for key, network := range config.Networks {
		p.networks[key] = network.Name
	}
	for name := range o.Ports {
		if _, ok := p.services[name]; !ok {
			return nil, fmt.Errorf("%s has no service %q: run this in the root of the repository", o.File, name)
		}
	}
	p.addrs, err = freeAddrs(slices.Sorted(maps.Keys(o.Ports)))
	return p, err
}

// Configure sets the configuration for the next Up. Running containers stay as they are until then.
func (p *Project) Configure(c Config) error {
	for _, profile := range p.config.Profiles {
		if !slices.Contains(c.Profiles, profile) {
			c.Profiles = append(slices.Clone(c.Profiles), profile)
		}
	}
	p.config = c
	if c.Overlay != "" {
		if err := os.WriteFile(p.overlay(), []byte(c.Overlay), 0o600); err != nil {
			return err
		}
	}
	return p.writeOverride(c.Image)
}

// Config returns the current configuration.
func (p *Project) Config() Config { return p.config }

// Addr returns the loopback address of a service.
func (p *Project) Addr(service string) string { return p.addrs[service] }

// ImageOf returns the image that the compose file gives to a service.
func (p *Project) ImageOf(service string) string { return p.services[service].Image }

func (p *Project) override() string { return filepath.Join(p.Dir, p.Name+".yml") }
func (p *Project) overlay() string  { return filepath.Join(p.Dir, p.Name+"-overlay.yml") }

// writeOverride writes the file that is laid over the compose file: it sets image and environment of the built services,
// and removes all published ports but the chosen ones.
func (p *Project) writeOverride(image string) error {
	var b strings.Builder
	b.WriteString("services:\n")
	for _, name := range slices.Sorted(maps.Keys(p.services)) {
		fmt.Fprintf(&b, "  %s:\n    ports: !override [%s]\n", name, p.published(name))
		if p.services[name].Image != p.Image {
			continue
		}
		fmt.Fprintf(&b, "    image: %s\n    pull_policy: never\n    environment:\n", image)
		for _, key := range slices.Sorted(maps.Keys(p.config.Env)) {
			fmt.Fprintf(&b, "      %s: %q\n", key, p.config.Env[key])
		}
	}
	return os.WriteFile(p.override(), []byte(b.String()), 0o600)
}

// published returns the port mapping of a service, or nothing.
func (p *Project) published(service string) string {
	target, ok := p.Ports[service]
	if !ok {
		return ""
	}
	if ports := p.services[service].Ports; target == 0 && len(ports) > 0 {
		target = ports[0].Target
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%s:%d", p.addrs[service], target))
}

// compose runs docker compose for this project.
func (p *Project) compose(ctx context.Context, env []string, args ...string) (string, error) {
	all := []string{"compose", "--ansi=never", "--progress=plain", "--project-name", p.Name, "--file", p.File}
	if _, err := os.Stat(p.override()); err == nil {
		all = append(all, "--file", p.override())
	}
	if p.config.Overlay != "" {
		all = append(all, "--file", p.overlay())
	}
	for _, profile := range p.config.Profiles {
		all = append(all, "--profile", profile)
	}
	return p.run(ctx, append(slices.Clone(p.env), env...), append(all, args...)...)
}

// Build builds an image for the services of Options.Image. env are variables of the compose file for this build.
func (p *Project) Build(ctx context.Context, image string, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, BuildTimeout)
	defer cancel()
	builder := ""
	for name, s := range p.services {
		if len(s.Build) > 0 && s.Image == p.Image {
			builder = name
		}
	}
	if builder == "" {
		return fmt.Errorf("no service in %s builds %s", p.File, p.Image)
	}
	if err := p.writeOverride(image); err != nil {
		return err
	}
	_, err := p.compose(ctx, env, "build", builder)
	return errors.Join(err, p.writeOverride(p.config.Image))
}

// Up starts all services that are not running, and waits until they are healthy.
func (p *Project) Up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	if _, err := p.compose(ctx, nil, "up", "--detach", "--wait", "--no-build", "--quiet-pull"); err != nil {
		return errors.Join(err, errors.New(p.unhealthy(context.WithoutCancel(ctx))))
	}
	return p.readContainers(ctx)
}

// unhealthy shows the last lines of the logs of containers that do not run well.
func (p *Project) unhealthy(ctx context.Context) string {
	listed, err := p.compose(ctx, nil, "ps", "--all", "--format", "{{.Service}} {{.State}} {{.Health}} {{.ExitCode}}")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for line := range strings.Lines(listed) {
		f := append(strings.Fields(line), "", "", "")
		if (f[1] == "running" && f[2] != "unhealthy" && f[2] != "starting") || strings.TrimSpace(line) == f[0]+" exited 0" {
			continue
		}
		logs, _ := p.compose(ctx, nil, "logs", "--no-color", "--tail=8", f[0])
		fmt.Fprintf(&b, "%s\n%s\n", strings.TrimSpace(line), logs)
	}
	return b.String()
}

func (p *Project) readContainers(ctx context.Context) error {
	listed, err := p.compose(ctx, nil, "ps", "--all", "--no-trunc", "--format", "{{.Service}} {{.ID}}")
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

// Down removes everything of the project except images.
func (p *Project) Down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	// docker rm --force also removes paused containers, which would not react to the SIGTERM of compose down.
	ids, err := p.Run(ctx, "ps", "--all", "--quiet", "--filter", "label=com.docker.compose.project="+p.Name)
	if err == nil && ids != "" {
		_, err = p.Run(ctx, append([]string{"rm", "--force", "--volumes"}, strings.Fields(ids)...)...)
	}
	_, downErr := p.compose(ctx, nil, "down", "--volumes", "--remove-orphans", "--timeout", "5")
	return errors.Join(err, downErr)
}
