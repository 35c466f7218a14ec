package compose

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// freeAddrs finds a free loopback address for each service. Another process may take one before Docker does; then Up fails.
func freeAddrs(services []string) (map[string]string, error) {
	addrs := map[string]string{}
	for _, service := range services {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all of them stay open until the last one is chosen
		addrs[service] = l.Addr().String()
	}
	return addrs, nil
}

// Containers returns the number of containers.
func (p *Project) Containers() int { return len(p.containers) }

// Container returns the id of a service's container.
func (p *Project) Container(service string) (string, error) {
	if id, ok := p.containers[service]; ok {
		return id, nil
	}
	return "", fmt.Errorf("service %q has no container", service)
}

// Do runs one docker command, such as kill, on the containers of several services.
func (p *Project) Do(ctx context.Context, command []string, services ...string) error {
	for _, service := range services {
		id, err := p.Container(service)
		if err != nil {
			return err
		}
		command = append(command, id)
	}
	_, err := p.Run(ctx, command...)
	return err
}

// Exec runs a command in the container of a service and returns its output.
func (p *Project) Exec(ctx context.Context, service string, command ...string) (string, error) {
	id, err := p.Container(service)
	if err != nil {
		return "", err
	}
	return p.Run(ctx, append([]string{"exec", id}, command...)...)
}

// Disconnect removes a service from a network. What it sends there is lost without an answer.
func (p *Project) Disconnect(ctx context.Context, service, network string) error {
	return p.Do(ctx, []string{"network", "disconnect", p.networks[network]}, service)
}

// Connect adds a service to a network again, under its name.
func (p *Project) Connect(ctx context.Context, service, network string) error {
	return p.Do(ctx, []string{"network", "connect", "--alias", service, p.networks[network]}, service)
}

// Running reports whether the container of a service runs.
func (p *Project) Running(ctx context.Context, service string) (bool, error) {
	id, err := p.Container(service)
	if err != nil {
		return false, err
	}
	text, err := p.Run(ctx, "inspect", "--format", "{{.State.Running}}", id)
	return text == "true", err
}

// Write writes a file in the container of a service, whether it runs or not.
func (p *Project) Write(ctx context.Context, service, path, text string) error {
	id, err := p.Container(service)
	if err != nil {
		return err
	}
	file := filepath.Join(p.Dir, "copied-"+filepath.Base(path))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // the user in the container has to read it
		return err
	}
	_, err = p.Run(ctx, "cp", file, id+":"+path)
	return err
}
