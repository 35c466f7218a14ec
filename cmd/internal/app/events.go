package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-co-op/gocron/v2"

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

// eventStream names the shop's events at a broker.
const eventStream = "seckill.orders"

// rocketTopic is the same for RocketMQ, whose names have no dots.
const rocketTopic = "seckill-orders"

// openBroker opens what the options name. None of them has to be there yet: events wait in the outbox.
func openBroker(opts *Options, log *slog.Logger, s *stack) (broker outbox.Broker, err error) {
	switch opts.Events.Broker {
	case "redis":
		client, err := openRedisClient(opts, opts.Servers.RedisAddrs, s)
		if err != nil {
			return nil, err
		}
		if broker, err = redisstream.New(client, redisstream.Options{Stream: eventStream, Groups: opts.Events.groups(), Log: log}); err != nil {
			return nil, err
		}
	case "rabbitmq":
		broker, err = rabbitmq.New(rabbitmq.Options{URL: opts.Events.AMQPURL, Exchange: eventStream, Groups: opts.Events.groups(), Log: log})
	case "kafka":
		broker, err = kafka.New(kafka.Options{Seeds: opts.Events.KafkaAddrs, Topic: eventStream, Log: log})
	case "rocketmq":
		broker, err = rocketmq.New(rocketmq.Options{NameServers: opts.Events.RocketMQAddrs, Topic: rocketTopic, Log: log})
	default:
		broker = inproc.New(inproc.Options{Groups: opts.Events.groups(), DeadLetter: func(group string, e outbox.Event, err error) {
			log.Error("inproc: a consumer gave up an event", "group", group, "event", e.ID, "cause", err)
		}})
	}
	if err != nil {
		return nil, err
	}
	s.onClose("broker", func(context.Context) error { return broker.Close() })
	return broker, nil
}

// startEvents runs the relay, the jobs that keep the outbox in order, and the consumers. It returns what wakes the relay.
func (a *App) startEvents(opts *Options, b backends, m *metrics) (wake func(), err error) {
	if opts.Events.Consume {
		if err := a.startConsumers(opts, b.db, b.broker, m, a.consumerEnded); err != nil {
			return nil, err
		}
	}
	store := repository.NewOutbox(b.db)
	relay := outbox.NewRelay(outbox.Config{
		Store: store, Broker: b.broker, Observer: relayWatch{outboxMetrics{m, a.log}, m.meter}, BatchSize: opts.Events.OutboxBatch,
	})
	a.stack.run("relay", relay.Run)
	jobs := &outbox.Jobs{
		Relay: relay, Maintenance: store, Log: a.log, PurgeAfter: opts.Events.OutboxKeep, Archive: opts.Events.OutboxArchive,
		Instance:  instanceName(),
		Reconcile: []outbox.Reconcile{{Consumer: pointsGroup, Types: []string{string(service.OrderPaid)}}},
	}
	if opts.Events.notify() {
		jobs.Reconcile = append(jobs.Reconcile, outbox.Reconcile{Consumer: notificationGroup})
	}
	if opts.Events.AlertWebhook != "" {
		hook, err := webhook.New(opts.Events.AlertWebhook)
		if err != nil {
			return nil, fmt.Errorf("--alert-webhook: %w", err)
		}
		jobs.Alert = func(ctx context.Context, a outbox.Alert) error { return hook.Post(ctx, "", a) }
	}
	wake = relay.Wake
	if opts.Events.WakeOthers {
		client, err := openRedisClient(opts, opts.Servers.RedisAddrs, &a.stack)
		if err != nil {
			return nil, err
		}
		waker := redisstream.NewWaker(client, eventStream+".wake", relay.Wake)
		a.stack.run("waker", waker.Run)
		wake = waker.Wake
	}
	return wake, a.schedule(opts, jobs)
}

// schedule runs the jobs: by a scheduler in this process, or by an XXL-Job administration server. Both on several
// instances at once does no harm.
func (a *App) schedule(opts *Options, jobs *outbox.Jobs) error {
	if len(opts.Events.XXLJobAdmins) > 0 {
		return a.startXXLJob(opts, jobs)
	}
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.stack.onClose("scheduler", func(context.Context) error {
		cancel()
		return scheduler.Shutdown()
	})
	for _, job := range jobs.List() {
		_, err := scheduler.NewJob(gocron.DurationJob(job.Every), gocron.NewTask(func() {
			did, err := job.Run(ctx)
			switch {
			case err != nil && ctx.Err() == nil:
				a.log.Warn("a job failed; it runs again at its next turn", "job", job.Name, "error", err)
			case did != "":
				a.log.Debug("job", "job", job.Name, "did", did)
			}
		}), gocron.WithSingletonMode(gocron.LimitModeReschedule), gocron.WithName(job.Name))
		if err != nil {
			return fmt.Errorf("schedule %s: %w", job.Name, err)
		}
	}
	scheduler.Start()
	return nil
}
