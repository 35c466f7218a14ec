package app

import (
	"errors"
	"fmt"
	"time"
)

// Events say how what happened to orders gets out of the shop.
type Events struct {
	Carrier  `embed:""`
	Delivery `embed:""`
}

// Carrier says what carries events to consumers, and what consumers do. Processes that only consume need no more.
type Carrier struct {
	Broker        string   `enum:"inproc,redis,rabbitmq,kafka,rocketmq" default:"inproc" help:"What carries events to consumers: ${enum}."`
	AMQPURL       string   `name:"amqp-url" placeholder:"amqp://USER:PASS@HOST:5672/" help:"RabbitMQ, for --broker=rabbitmq."`
	KafkaAddrs    []string `placeholder:"HOST:9092,…" help:"Kafka, for --broker=kafka."`
	RocketMQAddrs []string `name:"rocketmq-addrs" placeholder:"HOST:9876,…" help:"Name servers of RocketMQ, for --broker=rocketmq."`
	Notify        bool     `help:"Log a notification of each change of an order. Costs a transaction for each."`
	NotifyWebhook string   `placeholder:"URL" help:"Send the notifications there too."`
}

// Delivery says how a shop hands its events to the carrier, and keeps them.
type Delivery struct {
	Consume       bool          `default:"true" negatable:"" help:"Run the consumers in this process too."`
	WakeOthers    bool          `help:"Wake the relays of other instances too, by Redis publish/subscribe, after each commit."`
	OutboxBatch   int           `default:"100" help:"Events that the relay claims and publishes together."`
	OutboxKeep    time.Duration `default:"168h" help:"How long sent events are kept."`
	OutboxArchive bool          `help:"Move them to a table of their own then, instead of deleting them."`
	AlertWebhook  string        `placeholder:"URL" help:"Gets an alert as JSON when events stay unsent or were given up."`
	XXLJobAdmins  []string      `name:"xxl-job-admins" placeholder:"URL,…" help:"XXL-Job administration servers that run the jobs, instead of this process's scheduler."`
	XXLJobApp     string        `name:"xxl-job-app" default:"seckill" help:"Name of the executor at XXL-Job."`
	XXLJobListen  string        `name:"xxl-job-listen" default:"127.0.0.1:9999" placeholder:"HOST:PORT" help:"Where the executor listens."`
	XXLJobAddress string        `name:"xxl-job-address" placeholder:"URL" help:"Where the administration server reaches it; default: http:// and where it listens."`
	XXLJobToken   string        `name:"xxl-job-token" placeholder:"SECRET" help:"Access token, the same on both sides."`
}

// groups are those that the options want to get events.
func (c *Carrier) groups() []string {
	if c.notify() {
		return []string{pointsGroup, notificationGroup}
	}
	return []string{pointsGroup}
}

func (c *Carrier) notify() bool { return c.Notify || c.NotifyWebhook != "" }

func (c *Carrier) validate(s *Servers) error {
	switch {
	case c.Broker != "inproc" && s.Embedded():
		return fmt.Errorf("--broker=%s needs --mysql-dsn: consumers elsewhere could not reach an embedded database", c.Broker)
	case c.Broker == "redis" && len(s.RedisAddrs) == 0:
		return errors.New("--broker=redis needs --redis-addrs")
	case c.Broker == "rabbitmq" && c.AMQPURL == "":
		return errors.New("--broker=rabbitmq needs --amqp-url")
	case c.Broker == "kafka" && len(c.KafkaAddrs) == 0:
		return errors.New("--broker=kafka needs --kafka-addrs")
	case c.Broker == "rocketmq" && len(c.RocketMQAddrs) == 0:
		return errors.New("--broker=rocketmq needs --rocketmq-addrs")
	}
	return nil
}

func (o *Options) validateEvents() error {
	e, s := &o.Events, &o.Servers
	if err := e.Carrier.validate(s); err != nil {
		return err
	}
	switch {
	case e.Broker == "inproc" && !e.Consume:
		return errors.New("--no-consume needs a --broker that others can reach: with inproc nobody would get the events")
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
