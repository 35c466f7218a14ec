package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"seckill/handler"
	"seckill/handler/consumer"
	"seckill/repository"
	"seckill/repository/webhook"
	"seckill/service"
	"seckill/service/outbox"
)

// The consumer groups. Each gets every event.
const (
	pointsGroup       = "points"
	notificationGroup = "notification"
)

// startConsumers subscribes the consumers, and sends the notifications that one of them queues. ended is told of one
// that ends by itself.
func (a *App) startConsumers(opts *Options, db *repository.DB, broker outbox.Broker, m *metrics, ended func(error)) error {
	store := repository.NewConsumed(db)
	handlers := map[string]outbox.Handler{pointsGroup: consumer.Points(store, m)}
	if opts.Events.notify() {
		notifier := &service.Notifier{Store: store, Log: a.log}
		if opts.Events.NotifyWebhook != "" {
			hook, err := webhook.New(opts.Events.NotifyWebhook)
			if err != nil {
				return fmt.Errorf("--notify-webhook: %w", err)
			}
			notifier.Send = func(ctx context.Context, key string, e service.OrderEvent) error { return hook.Post(ctx, key, e) }
		}
		a.stack.run("notifier", notifier.Run)
		handlers[notificationGroup] = consumer.Notification(store, m)
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

// consumerEnded is all that happens to a shop whose consumer ends: it goes on selling, and events wait.
func (a *App) consumerEnded(err error) {
	a.log.Error("events are no longer consumed here", "error", err)
}

// StartConsumers starts the consumers alone, to run next to instances that serve without them. With an address to listen
// at, it also answers whether they are well, and metrics. ctx bounds the start only.
func StartConsumers(ctx context.Context, opts Options, log *slog.Logger) (*App, error) {
	if err := opts.Events.Carrier.validate(&opts.Servers); err != nil {
		return nil, err
	}
	if err := opts.Trace.validate(); err != nil {
		return nil, err
	}
	if opts.Events.Broker == "inproc" {
		return nil, errors.New("--broker=inproc carries events within one process only; consumers of their own need redis, rabbitmq, kafka or rocketmq")
	}
	a := newApp(log)
	if err := a.consume(ctx, &opts); err != nil {
		return nil, a.abandon(ctx, &opts, err)
	}
	log.Info("consuming", "broker", opts.Events.Broker, "groups", strings.Join(opts.Events.groups(), ", "))
	return a, nil
}

func (a *App) consume(ctx context.Context, opts *Options) (err error) {
	if err := a.startTraces(ctx, opts); err != nil {
		return err
	}
	if opts.API.Listen != "" {
		if err := a.listen(ctx, opts); err != nil {
			return err
		}
	}
	m := newMetrics()
	if a.DB, err = openMigrated(ctx, opts, a.log, &a.stack); err != nil {
		return err
	}
	m.watch(a.DB)
	broker, err := openBroker(opts, a.log, &a.stack)
	if err != nil {
		return err
	}
	broker = a.traces.Broker(broker, opts.Events.Broker)
	if err := a.startConsumers(opts, a.DB, broker, m, a.fail); err != nil {
		return err
	}
	if a.listener == nil {
		return nil
	}
	h, err := handler.NewProbes(handler.Config{
		Ready: a.ready(), Log: a.log, Metrics: m.handler(), Observe: m.request, AccessLog: opts.Log.AccessLog,
	})
	if err == nil {
		a.answer(opts, h)
	}
	return err
}

func instanceName() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
