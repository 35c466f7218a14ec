package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"

	"seckill/handler/consumer"
	"seckill/repository"
	"seckill/repository/broker/inproc"
	"seckill/repository/broker/kafka"
	"seckill/repository/broker/rabbitmq"
	"seckill/repository/broker/redisstream"
	"seckill/repository/broker/rocketmq"
	"seckill/service"
	"seckill/service/outbox"
)

// The consumer groups. Each gets every event.
const (
	pointsGroup       = "points"
	notificationGroup = "notification"
)

// groups are those that the options want to get events.
func (e *Events) groups() []string {
	if e.notify() {
		return []string{pointsGroup, notificationGroup}
	}
	return []string{pointsGroup}
}

func (e *Events) notify() bool { return e.Notify || e.NotifyWebhook != "" }

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
		broker = inproc.New(inproc.Options{Groups: opts.Events.groups()})
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
		if err := startConsumers(opts, b.db, b.broker, m, a.log, &a.stack); err != nil {
			return nil, err
		}
	}
	store := repository.NewOutbox(b.db)
	relay := outbox.NewRelay(outbox.Config{
		Store: store, Broker: b.broker, Observer: outboxMetrics{m, a.log}, BatchSize: opts.Events.OutboxBatch,
		Yield: outbox.Yield{Busy: busyCommits},
	})
	a.stack.run("relay", relay.Run)
	jobs := outbox.Jobs{
		Relay: relay, Keeper: store, Log: a.log, PurgeAfter: opts.Events.OutboxKeep, Archive: opts.Events.OutboxArchive,
		Monitor:   &outbox.Monitor{Keeper: store, Log: a.log, Instance: instanceName(), Observe: m.outboxHealth},
		Reconcile: []outbox.Reconcile{{Consumer: pointsGroup, Types: []string{string(service.OrderPaid)}}},
	}
	if opts.Events.notify() {
		jobs.Reconcile = append(jobs.Reconcile, outbox.Reconcile{Consumer: notificationGroup})
	}
	if opts.Events.AlertWebhook != "" {
		hook, err := outbox.NewWebhook(opts.Events.AlertWebhook)
		if err != nil {
			return nil, fmt.Errorf("--alert-webhook: %w", err)
		}
		jobs.Monitor.Alert = hook.Alert
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
func (a *App) schedule(opts *Options, jobs outbox.Jobs) error {
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

// startConsumers subscribes the consumers, and sends the notifications that one of them queues.
func startConsumers(opts *Options, db *repository.DB, broker outbox.Broker, m *metrics, log *slog.Logger, s *stack) error {
	store, observed := repository.NewConsumed(db), consumer.Options{Observe: m.consumedEvent}
	handlers := map[string]outbox.Handler{pointsGroup: consumer.Points(store, observed)}
	if opts.Events.notify() {
		notifier := &service.Notifier{Store: store, Log: log}
		if opts.Events.NotifyWebhook != "" {
			hook, err := outbox.NewWebhook(opts.Events.NotifyWebhook)
			if err != nil {
				return fmt.Errorf("--notify-webhook: %w", err)
			}
			notifier.Send = func(ctx context.Context, key string, e service.OrderEvent) error { return hook.Post(ctx, key, e) }
		}
		s.run("notifier", notifier.Run)
		handlers[notificationGroup] = consumer.Notification(store, observed)
	}
	for group, handle := range handlers {
		s.run("consumer "+group, func(ctx context.Context) {
			if err := broker.Subscribe(ctx, group, handle); err != nil && ctx.Err() == nil {
				log.Error("a consumer ended", "group", group, "error", err)
			}
		})
	}
	return nil
}

// Consume runs the consumers alone until ctx ends, next to instances that serve without them.
func Consume(ctx context.Context, opts Options, log *slog.Logger) (err error) {
	if err := opts.validateEvents(); err != nil {
		return err
	}
	if opts.Events.Broker == "inproc" {
		return errors.New("--broker=inproc carries events within one process only; consumers of their own need redis, rabbitmq, kafka or rocketmq")
	}
	var s stack
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), opts.Shutdown.ShutdownTimeout)
		defer cancel()
		err = errors.Join(err, s.close(closing))
	}()
	db, err := OpenDatabase(ctx, &opts, log)
	if err != nil {
		return err
	}
	s.onClose("database", func(context.Context) error { return db.Close() })
	if err := db.Migrated(ctx); err != nil {
		return err
	}
	broker, err := openBroker(&opts, log, &s)
	if err != nil {
		return err
	}
	if err := startConsumers(&opts, db, broker, newMetrics(), log, &s); err != nil {
		return err
	}
	log.Info("consuming", "broker", opts.Events.Broker, "groups", strings.Join(opts.Events.groups(), ", "))
	<-ctx.Done()
	return nil
}

func instanceName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// Events say how what happened to orders gets out of the shop.
type Events struct {
	Broker        string        `enum:"inproc,redis,rabbitmq,kafka,rocketmq" default:"inproc" help:"What carries events to consumers: ${enum}."`
	AMQPURL       string        `name:"amqp-url" placeholder:"amqp://USER:PASS@HOST:5672/" help:"RabbitMQ, for --broker=rabbitmq."`
	KafkaAddrs    []string      `placeholder:"HOST:9092,…" help:"Kafka, for --broker=kafka."`
	RocketMQAddrs []string      `name:"rocketmq-addrs" placeholder:"HOST:9876,…" help:"Name servers of RocketMQ, for --broker=rocketmq."`
	WakeOthers    bool          `help:"Wake the relays of other instances too, by Redis publish/subscribe, after each commit."`
	Consume       bool          `default:"true" negatable:"" help:"Run the consumers in this process too."`
	OutboxBatch   int           `default:"100" help:"Events that the relay claims and publishes together."`
	OutboxKeep    time.Duration `default:"168h" help:"How long sent events are kept."`
	OutboxArchive bool          `help:"Move them to a table of their own then, instead of deleting them."`
	AlertWebhook  string        `placeholder:"URL" help:"Gets an alert as JSON when events stay unsent or were given up."`
	Notify        bool          `help:"Log a notification of each change of an order. Costs a transaction for each."`
	NotifyWebhook string        `placeholder:"URL" help:"Send the notifications there too."`
	XXLJobAdmins  []string      `name:"xxl-job-admins" placeholder:"URL,…" help:"XXL-Job administration servers that run the jobs, instead of this process's scheduler."`
	XXLJobApp     string        `name:"xxl-job-app" default:"seckill" help:"Name of the executor at XXL-Job."`
	XXLJobListen  string        `name:"xxl-job-listen" default:"127.0.0.1:9999" placeholder:"HOST:PORT" help:"Where the executor listens."`
	XXLJobAddress string        `name:"xxl-job-address" placeholder:"URL" help:"Where the administration server reaches it; default: http:// and where it listens."`
	XXLJobToken   string        `name:"xxl-job-token" placeholder:"SECRET" help:"Access token, the same on both sides."`
}

func (o *Options) validateEvents() error {
	e, s := &o.Events, &o.Servers
	switch {
	case e.Broker != "inproc" && s.Embedded():
		return fmt.Errorf("--broker=%s needs --mysql-dsn: consumers elsewhere could not reach an embedded database", e.Broker)
	case e.Broker == "inproc" && !e.Consume:
		return errors.New("--no-consume needs a --broker that others can reach: with inproc nobody would get the events")
	case e.Broker == "redis" && len(s.RedisAddrs) == 0:
		return errors.New("--broker=redis needs --redis-addrs")
	case e.Broker == "rabbitmq" && e.AMQPURL == "":
		return errors.New("--broker=rabbitmq needs --amqp-url")
	case e.Broker == "kafka" && len(e.KafkaAddrs) == 0:
		return errors.New("--broker=kafka needs --kafka-addrs")
	case e.Broker == "rocketmq" && len(e.RocketMQAddrs) == 0:
		return errors.New("--broker=rocketmq needs --rocketmq-addrs")
	case e.WakeOthers && len(s.RedisAddrs) == 0:
		return errors.New("--wake-others needs --redis-addrs")
	case e.OutboxBatch < 1 || e.OutboxBatch > maxBatch:
		return fmt.Errorf("--outbox-batch must be from 1 to %d", maxBatch)
	case e.OutboxKeep < time.Hour:
		return errors.New("--outbox-keep must be at least 1h")
	case len(e.XXLJobAdmins) > 0 && e.XXLJobToken == "":
		return errors.New("--xxl-job-admins needs --xxl-job-token: anybody could run the jobs without one")
	}
	return nil
}

// busyCommits is how many commits a second mean that the shop is busy and the relay makes way. A group commit takes up to
// a few hundred orders, so that a saturated shop has only some dozen.
const busyCommits = 10
