package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"seckill/handler"
	"seckill/handler/consumer"
	"seckill/repository"
	"seckill/repository/webhook"
	"seckill/service"
	"seckill/service/outbox"
)

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
