package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"

	"seckill/handler"
	"seckill/handler/consumer"
	"seckill/handler/xxljob"
	"seckill/repository"
	"seckill/repository/broker/inproc"
	"seckill/repository/broker/kafka"
	"seckill/repository/broker/rabbitmq"
	"seckill/repository/broker/redisstream"
	"seckill/repository/broker/rocketmq"
	"seckill/repository/webhook"
	"seckill/service"
	"seckill/service/outbox"
)

const (
	eventStream = "seckill.orders" // names the shop's events at a broker
	rocketTopic = "seckill-orders" // the same for RocketMQ, whose names have no dots
)

// openBroker opens the broker of the options. It does not have to be reachable yet: events wait in the outbox.
func (a *App) openBroker() (broker outbox.Broker, err error) {
	e := &a.opts.Events
	switch e.Broker {
	case "redis":
		client, err := a.openRedis(a.opts.Servers.RedisAddrs)
		if err != nil {
			return nil, err
		}
		if broker, err = redisstream.New(client, redisstream.Options{Stream: eventStream, Groups: e.groups(), Log: a.log}); err != nil {
			return nil, err
		}
	case "rabbitmq":
		broker, err = rabbitmq.New(rabbitmq.Options{URL: e.AMQPURL, Exchange: eventStream, Groups: e.groups(), Log: a.log})
	case "kafka":
		broker, err = kafka.New(kafka.Options{Seeds: e.KafkaAddrs, Topic: eventStream, Log: a.log})
	case "rocketmq":
		broker, err = rocketmq.New(rocketmq.Options{NameServers: e.RocketMQAddrs, Topic: rocketTopic, Log: a.log})
	case "inproc":
		broker = inproc.New(inproc.Options{Groups: e.groups(), DeadLetter: func(group string, e outbox.Event, err error) {
			a.log.Error("inproc: a consumer gave up an event", "group", group, "event", e.ID, "cause", err)
		}})
	default:
		err = fmt.Errorf("unknown broker %q", e.Broker)
	}
	if err != nil {
		return nil, err
	}
	a.stack.onClose("broker", func(context.Context) error { return broker.Close() })
	return a.traces.Broker(broker, e.Broker), nil
}

// startEvents runs the consumers, the relay, and the jobs that maintain the outbox. It returns the function that wakes the
// relay.
func (a *App) startEvents(broker outbox.Broker) (wake func(), err error) {
	if a.opts.Events.Consume {
		if err := a.startConsumers(broker, a.consumerEnded); err != nil {
			return nil, err
		}
	}
	relay := outbox.NewRelay(outbox.Config{
		Store: repository.NewOutbox(a.DB), Broker: broker, Observer: a.observer, BatchSize: a.opts.Events.OutboxBatch,
	})
	a.stack.run("relay", relay.Run)
	if err := a.startJobs(relay); err != nil {
		return nil, err
	}
	if !a.opts.Events.WakeOthers {
		return relay.Wake, nil
	}
	client, err := a.openRedis(a.opts.Servers.RedisAddrs)
	if err != nil {
		return nil, err
	}
	waker := redisstream.NewWaker(client, eventStream+".wake", relay.Wake)
	a.stack.run("waker", waker.Run)
	return waker.Wake, nil
}

// startJobs runs the jobs that maintain the outbox: with a scheduler in this process, or driven by an XXL-Job
// administration server. Several schedulers at the same time are safe.
func (a *App) startJobs(relay *outbox.Relay) error {
	e, store := &a.opts.Events, repository.NewOutbox(a.DB)
	jobs := &outbox.Jobs{
		Relay: relay, Maintenance: store, Log: a.log, PurgeAfter: e.OutboxKeep, Archive: e.OutboxArchive,
		Instance:  processName(),
		Reconcile: []outbox.Reconcile{{Consumer: service.PointsConsumer, Types: []string{string(service.OrderPaid)}}},
	}
	if e.notify() {
		jobs.Reconcile = append(jobs.Reconcile, outbox.Reconcile{Consumer: service.NotificationConsumer})
	}
	if e.AlertWebhook != "" {
		hook, err := webhook.New(e.AlertWebhook)
		if err != nil {
			return fmt.Errorf("--alert-webhook: %w", err)
		}
		jobs.Alert = func(ctx context.Context, a outbox.Alert) error { return hook.Post(ctx, "", a) }
	}
	if len(e.XXLJobAdmins) > 0 {
		return a.startXXLJob(jobs.List())
	}
	return a.schedule(jobs.List())
}

func processName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// schedule runs the jobs in this process.
func (a *App) schedule(jobs []outbox.Job) error {
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.stack.onClose("scheduler", func(context.Context) error {
		cancel()
		return scheduler.Shutdown()
	})
	for _, job := range jobs {
		_, err := scheduler.NewJob(gocron.DurationJob(job.Every), gocron.NewTask(func() { a.runJob(ctx, job) }),
			gocron.WithSingletonMode(gocron.LimitModeReschedule), gocron.WithName(job.Name))
		if err != nil {
			return fmt.Errorf("schedule %s: %w", job.Name, err)
		}
	}
	scheduler.Start()
	return nil
}

func (a *App) runJob(ctx context.Context, job outbox.Job) {
	result, err := job.Run(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		a.log.Warn("a job failed; it runs again when it is next due", "job", job.Name, "error", err)
	case result != "":
		a.log.Debug("job", "job", job.Name, "result", result)
	}
}

// startXXLJob serves the executor of the jobs at its own address, and registers it at the administration servers.
func (a *App) startXXLJob(jobs []outbox.Job) error {
	e := &a.opts.Events
	listener, err := net.Listen("tcp", e.XXLJobListen)
	if err != nil {
		return fmt.Errorf("--xxl-job-listen: %w", err)
	}
	address := e.XXLJobAddress
	if address == "" {
		address = "http://" + listener.Addr().String()
	}
	executor, err := xxljob.New(xxljob.Config{
		Admins: e.XXLJobAdmins, AppName: e.XXLJobApp, Address: address, Token: e.XXLJobToken, Jobs: jobs, Log: a.log,
	})
	if err != nil {
		_ = listener.Close()
		return fmt.Errorf("xxl-job: %w", err)
	}
	a.serveUntilClose("xxl-job server", listener, &http.Server{Handler: executor, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second})
	a.stack.run("xxl-job executor", executor.Run)
	return nil
}

// StartConsumers starts the consumers alone, to run beside instances that serve without them. With an address to listen
// at, it also serves health probes and metrics. ctx bounds the start only.
func StartConsumers(ctx context.Context, opts Options, log *slog.Logger) (*App, error) {
	if err := errors.Join(opts.Events.BrokerOptions.validate(&opts.Servers), opts.Trace.validate()); err != nil {
		return nil, err
	}
	if opts.Events.Broker == "inproc" {
		return nil, errors.New("--broker=inproc carries events within one process only; separate consumers need redis, rabbitmq, kafka or rocketmq")
	}
	a := newApp(opts, log)
	if err := a.startConsumersAlone(ctx); err != nil {
		return a.orRelease(ctx, err)
	}
	log.Info("consuming", "broker", opts.Events.Broker, "groups", strings.Join(opts.Events.groups(), ", "))
	return a, nil
}

func (a *App) startConsumersAlone(ctx context.Context) error {
	if err := a.startTraces(ctx); err != nil {
		return err
	}
	if a.opts.API.Listen != "" {
		if err := a.listen(ctx); err != nil {
			return err
		}
	}
	if err := a.openMigrated(ctx); err != nil {
		return err
	}
	broker, err := a.openBroker()
	if err != nil {
		return err
	}
	if err := a.startConsumers(broker, a.fail); err != nil || a.listener == nil {
		return err
	}
	h, err := handler.NewProbes(handler.Config{
		Ready: a.DB.Ping, Log: a.log, Metrics: a.observer.handler(), Observe: a.observer.Request, AccessLog: a.opts.Log.AccessLog,
	})
	if err == nil {
		a.serve(h)
	}
	return err
}

// startConsumers subscribes the consumers, and sends the notifications that one of them queues. It calls ended if a
// consumer ends before Close.
func (a *App) startConsumers(broker outbox.Broker, ended func(error)) error {
	store := repository.NewConsumerStore(a.DB)
	handlers := map[string]outbox.Handler{service.PointsConsumer: consumer.Points(store, a.observer)}
	if a.opts.Events.notify() {
		notifier := &service.Notifier{Store: store, Log: a.log}
		if a.opts.Events.NotifyWebhook != "" {
			hook, err := webhook.New(a.opts.Events.NotifyWebhook)
			if err != nil {
				return fmt.Errorf("--notify-webhook: %w", err)
			}
			notifier.Send = func(ctx context.Context, key string, e service.OrderEvent) error { return hook.Post(ctx, key, e) }
		}
		a.stack.run("notifier", notifier.Run)
		handlers[service.NotificationConsumer] = consumer.Notification(store, a.observer)
	}
	for group, handle := range handlers {
		a.stack.run("consumer "+group, func(ctx context.Context) {
			if err := broker.Subscribe(ctx, group, handle); err != nil && ctx.Err() == nil {
				ended(fmt.Errorf("the consumer %s ended: %w", group, err))
			}
		})
	}
	return nil
}

// consumerEnded logs that a consumer of a shop ended. The shop goes on selling, and events wait.
func (a *App) consumerEnded(err error) {
	a.log.Error("events are no longer consumed here", "error", err)
}
