package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"seckill/handler/xxljob"
	"seckill/service/outbox"
)

// startXXLJob serves the executor at an address of its own, and registers it.
func (a *App) startXXLJob(opts *Options, jobs *outbox.Jobs) error {
	listener, err := net.Listen("tcp", opts.Events.XXLJobListen)
	if err != nil {
		return fmt.Errorf("--xxl-job-listen: %w", err)
	}
	address := opts.Events.XXLJobAddress
	if address == "" {
		address = "http://" + listener.Addr().String()
	}
	executor, err := xxljob.New(xxljob.Config{
		Admins: opts.Events.XXLJobAdmins, AppName: opts.Events.XXLJobApp, Address: address,
		Token: opts.Events.XXLJobToken, Jobs: jobs.List(), Log: a.log,
	})
	if err != nil {
		_ = listener.Close()
		return fmt.Errorf("xxl-job: %w", err)
	}
	server := &http.Server{Handler: executor, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	a.stack.onClose("xxl-job server", func(context.Context) error { return server.Close() })
	a.stack.run("xxl-job executor", executor.Run)
	return nil
}
