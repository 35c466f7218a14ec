package app

import (
	"errors"
	"fmt"
	"time"

	"seckill/cmd/internal/tracing"
	"seckill/handler"
	"seckill/handler/token"
	"seckill/repository/lock/redislock"
	"seckill/service"
)

// Options are the settings of a shop, as flags and as SECKILL_* variables. Without any, the shop is embedded: it needs
// no server and keeps its data in a file.
type Options struct {
	Servers  Servers  `embed:"" group:"Servers"`
	Lock     Lock     `embed:"" group:"Lock"`
	IDs      IDs      `embed:"" group:"Ids"`
	Commit   Commit   `embed:"" group:"Orders"`
	Events   Events   `embed:"" group:"Events"`
	API      API      `embed:"" group:"API"`
	Board    Board    `embed:"" group:"API"`
	Log      Log      `embed:"" group:"Log"`
	Trace    Trace    `embed:"" group:"Traces"`
	Shutdown Shutdown `embed:"" group:"Shutdown"`
}

// Servers names the database, the Redis and the ZooKeeper servers that the shop uses.
type Servers struct {
	MySQLDSN   string `name:"mysql-dsn" placeholder:"USER:PASS@tcp(HOST:3306)/DB" help:"MySQL 8.4+ or MariaDB 10.6+. Without it everything is embedded."`
	MySQLConns int    `name:"mysql-conns" default:"32" help:"Maximum number of connections to the database."`
	Migrate    bool   `help:"Bring the tables up to date at the start, instead of refusing to serve."`
	Data       string `default:"data" type:"path" placeholder:"DIR" help:"Directory of the embedded database and its token key."`

	RedisAddrs            []string `name:"redis-addrs" placeholder:"HOST:6379,…" help:"Redis 7+, for --lock=redis, --ids=redis-segment, --broker=redis or --wake-others: a server, the Sentinels, or seeds of a cluster."`
	RedisSentinelMaster   string   `name:"redis-sentinel-master" placeholder:"NAME" help:"The addresses are Sentinels that watch this master."`
	RedisCluster          bool     `name:"redis-cluster" help:"The addresses are seeds of a Redis Cluster."`
	RedisUsername         string   `name:"redis-username" placeholder:"NAME"`
	RedisPassword         string   `name:"redis-password" placeholder:"SECRET"`
	RedisSentinelPassword string   `name:"redis-sentinel-password" placeholder:"SECRET"`
	ZooKeeperAddrs        []string `name:"zookeeper-addrs" placeholder:"HOST:2181,…" help:"ZooKeeper 3.5.3+, for --lock=zookeeper or --worker-leases=zookeeper."`
	RedisDB               int      `name:"redis-db" default:"0" help:"Number of the database; not for a cluster."`
}

// Embedded reports whether the shop brings its own database.
func (s *Servers) Embedded() bool { return s.MySQLDSN == "" }

// RedisConfig returns how to connect to the Redis servers at addrs.
func (s *Servers) RedisConfig(addrs []string) redislock.Config {
	return redislock.Config{
		Addrs: addrs, SentinelMaster: s.RedisSentinelMaster, Cluster: s.RedisCluster, Username: s.RedisUsername,
		Password: s.RedisPassword, SentinelPassword: s.RedisSentinelPassword, DB: s.RedisDB,
	}
}

// Lock chooses the lock in front of the database.
type Lock struct {
	Lock         string        `enum:"none,redis,redlock,zookeeper" default:"redis" help:"Lock in front of the database: ${enum}. The orders are right with any of them."`
	RedlockAddrs []string      `placeholder:"HOST:6379,…" help:"Three to nine independent Redis servers, for --lock=redlock."`
	LockSession  time.Duration `default:"10s" help:"Session of --lock=zookeeper: how long a lock outlives a holder that is gone."`
	LockScope    string        `enum:"user,voucher" default:"user" help:"What a lock excludes: the same user (${default}), or all buyers of a voucher, to see what that costs."`
	LockRequired bool          `help:"Refuse orders while the lock's servers are away, instead of going on with the database alone."`
	LockLease    time.Duration `default:"10s" help:"How long a lock outlives its last renewal."`
	LockTimeout  time.Duration `default:"250ms" help:"How long an order waits for the lock's servers to answer."`
}

// IDs chooses where the ids of orders come from.
type IDs struct {
	IDs          string `name:"ids" enum:"snowflake,leaf,redis-segment" default:"snowflake" help:"Ids of orders: ${enum}."`
	WorkerLeases string `enum:"database,zookeeper" default:"database" help:"Where instances lease the worker ids of their snowflakes: ${enum}."`
	DataCenter   int    `default:"0" help:"Data centre of the snowflake ids, from 0 to 31."`
}

// Commit says how orders are written to the database.
type Commit struct {
	CommitBatchMax    int           `default:"256" help:"Maximum number of orders in one transaction. With 1, each order has its own transaction, for comparison."`
	CommitConcurrency int           `default:"16" help:"Maximum number of transactions that place orders at the same time."`
	CommitTimeout     time.Duration `default:"10s" help:"How long a commit may take, until its orders are answered with outcome-unknown."`
	QueueMax          int           `default:"20000" help:"Maximum number of orders that wait for a commit; more are refused with 503."`
	ExpireEvery       time.Duration `default:"1s" help:"How often unpaid orders are looked for."`
}

// Events says how events about orders get to consumers.
type Events struct {
	BrokerOptions `embed:""`
	OutboxOptions `embed:""`
}

// BrokerOptions choose the broker and the consumers. A process that only consumes needs no more.
type BrokerOptions struct {
	Broker        string   `enum:"inproc,redis,rabbitmq,kafka,rocketmq" default:"inproc" help:"What carries events to consumers: ${enum}."`
	AMQPURL       string   `name:"amqp-url" placeholder:"amqp://USER:PASS@HOST:5672/" help:"RabbitMQ, for --broker=rabbitmq."`
	KafkaAddrs    []string `placeholder:"HOST:9092,…" help:"Kafka, for --broker=kafka."`
	RocketMQAddrs []string `name:"rocketmq-addrs" placeholder:"HOST:9876,…" help:"Name servers of RocketMQ, for --broker=rocketmq."`
	Notify        bool     `help:"Log a notification of each change of an order. Costs a transaction for each."`
	NotifyWebhook string   `placeholder:"URL" help:"Send the notifications to this URL too."`
}

// OutboxOptions say how a shop hands events to the broker, and how long it keeps them.
type OutboxOptions struct {
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

// API says where the shop is served, and to whom.
type API struct {
	Listen         string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to serve at. Port 0 takes a free one."`
	JWTKey         string   `name:"jwt-key" placeholder:"SECRET" help:"Key that signs tokens, at least 32 bytes. In embedded mode, one is made and kept in the data directory."`
	Guests         bool     `help:"Let anybody have a session of a new user. For demonstrations; on in embedded mode."`
	UserRate       float64  `default:"0" help:"Maximum number of requests of one user per second; 0: no limit."`
	AddressRate    float64  `default:"0" help:"Maximum number of requests from one address per second; 0: no limit."`
	TrustedProxies []string `placeholder:"CIDR,…" help:"Proxies whose X-Forwarded-For is believed. None by default."`
	Metrics        bool     `default:"true" negatable:"" help:"Serve Prometheus metrics at /metrics."`
}

// Board says who may watch the live board.
type Board struct {
	Board        string `enum:"auto,public,admin,off" default:"auto" help:"Who may watch the live board at /board: ${enum}. auto: the public in embedded mode, else admins."`
	BoardViewers int    `default:"500" help:"Maximum number of viewers at the same time."`
}

// Log says what is logged.
type Log struct {
	LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"Lowest level that is logged: ${enum}."`
	LogFormat string `enum:"text,json" default:"text" help:"Format of the log: ${enum}."`
	Pprof     string `placeholder:"HOST:PORT" help:"Serve Go's profiles there. Off by default."`
	AccessLog int    `default:"20" help:"Maximum number of requests that are logged per second; -1: all."`
}

// Trace says whether requests are traced, and where traces go.
type Trace struct {
	Endpoint string   `name:"traces" placeholder:"URL" help:"Send OpenTelemetry traces to this collector by OTLP/HTTP, such as http://127.0.0.1:4318. Off by default; OTEL_* variables say the rest."`
	Ratio    *float64 `name:"trace-ratio" placeholder:"0…1" help:"How many of the requests that come without a trace start one. Default: all, or as OTEL_TRACES_SAMPLER says."`
}

// Shutdown says how the shop ends.
type Shutdown struct {
	DrainDelay      time.Duration `default:"0s" help:"How long to go on serving after readiness fails, so that load balancers notice. Set it to the interval of their probes."`
	ShutdownTimeout time.Duration `default:"20s" help:"How long a shutdown may take until it is cut short."`
}

// Validate returns an error that names the first invalid option and what to do. kong (the flag parser) and Start call it.
func (o *Options) Validate() error {
	s, c := &o.Servers, &o.Commit
	switch {
	case s.Embedded() && len(s.RedisAddrs) > 0:
		return errors.New("--redis-addrs needs --mysql-dsn: locks that others share guard nothing if the database is this process's own")
	case !s.Embedded() && o.Lock.Lock == "redis" && len(s.RedisAddrs) == 0:
		return errors.New("--lock=redis needs --redis-addrs; to go without a lock, say --lock=none")
	case o.Lock.Lock == "redlock" && (len(o.Lock.RedlockAddrs) < 3 || len(o.Lock.RedlockAddrs) > 9):
		return errors.New("--lock=redlock needs --redlock-addrs of three to nine independent Redis servers")
	case o.IDs.IDs == "redis-segment" && len(s.RedisAddrs) == 0:
		return errors.New("--ids=redis-segment needs --redis-addrs: the embedded Redis forgets its counter at every start")
	case (o.Lock.Lock == "zookeeper" || o.IDs.WorkerLeases == "zookeeper") && len(s.ZooKeeperAddrs) == 0:
		return errors.New("--lock=zookeeper and --worker-leases=zookeeper need --zookeeper-addrs")
	case o.IDs.DataCenter < 0 || o.IDs.DataCenter > 31:
		return errors.New("--data-center must be from 0 to 31")
	case s.RedisCluster && s.RedisSentinelMaster != "":
		return errors.New("--redis-cluster and --redis-sentinel-master exclude each other")
	case !s.Embedded() && o.API.JWTKey == "":
		return errors.New("--jwt-key is needed with --mysql-dsn: all instances have to know the same key (openssl rand -base64 48)")
	case o.API.JWTKey != "" && len(o.API.JWTKey) < token.MinKeyBytes:
		return fmt.Errorf("--jwt-key has %d bytes; it needs at least %d (openssl rand -base64 48)", len(o.API.JWTKey), token.MinKeyBytes)
	case c.CommitBatchMax < 1 || c.CommitBatchMax > maxBatch:
		return fmt.Errorf("--commit-batch-max must be from 1 to %d", maxBatch)
	case c.CommitConcurrency < 1 || c.QueueMax < 1:
		return errors.New("--commit-concurrency and --queue-max must be at least 1")
	case s.MySQLConns < c.CommitConcurrency+4:
		return fmt.Errorf("--mysql-conns must be at least %d: --commit-concurrency and four for everything else", c.CommitConcurrency+4)
	case c.CommitTimeout < time.Second || c.CommitTimeout > handler.WriteTimeout/2:
		return fmt.Errorf("--commit-timeout must be from 1s to %s", handler.WriteTimeout/2)
	case c.ExpireEvery < 10*time.Millisecond, o.Lock.LockLease < time.Second, o.Lock.LockSession < time.Second, o.Lock.LockTimeout < time.Millisecond, o.Shutdown.ShutdownTimeout < time.Second:
		return errors.New("--expire-every must be at least 10ms, --lock-lease, --lock-session and --shutdown-timeout 1s, --lock-timeout 1ms")
	case o.Shutdown.DrainDelay < 0 || o.Shutdown.DrainDelay > o.Shutdown.ShutdownTimeout/2:
		return errors.New("--drain-delay must be at most half of --shutdown-timeout: the other half is for requests in progress")
	case o.Board.BoardViewers < 1:
		return errors.New("--board-viewers must be at least 1; to have no board, say --board=off")
	case o.API.UserRate < 0 || o.API.AddressRate < 0:
		return errors.New("--user-rate and --address-rate must not be negative")
	}
	return errors.Join(o.validateEvents(), o.Trace.validate())
}

// maxBatch keeps a batch well below SQLite's limit of 32,766 parameters and below a packet of MySQL.
const maxBatch = 2000

func (b *BrokerOptions) validate(s *Servers) error {
	switch {
	case b.Broker != "inproc" && s.Embedded():
		return fmt.Errorf("--broker=%s needs --mysql-dsn: consumers elsewhere could not reach an embedded database", b.Broker)
	case b.Broker == "redis" && len(s.RedisAddrs) == 0:
		return errors.New("--broker=redis needs --redis-addrs")
	case b.Broker == "rabbitmq" && b.AMQPURL == "":
		return errors.New("--broker=rabbitmq needs --amqp-url")
	case b.Broker == "kafka" && len(b.KafkaAddrs) == 0:
		return errors.New("--broker=kafka needs --kafka-addrs")
	case b.Broker == "rocketmq" && len(b.RocketMQAddrs) == 0:
		return errors.New("--broker=rocketmq needs --rocketmq-addrs")
	}
	return nil
}

func (o *Options) validateEvents() error {
	e, s := &o.Events, &o.Servers
	if err := e.BrokerOptions.validate(s); err != nil {
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

func (t *Trace) validate() error {
	if t.Endpoint != "" {
		if err := tracing.CheckEndpoint(t.Endpoint); err != nil {
			return fmt.Errorf("--traces: %w", err)
		}
	}
	if t.Ratio != nil && !(*t.Ratio >= 0 && *t.Ratio <= 1) { // written so that it refuses NaN
		return errors.New("--trace-ratio must be from 0 to 1")
	}
	return nil
}

// groups returns the consumer groups that get events.
func (b *BrokerOptions) groups() []string {
	if b.notify() {
		return []string{service.PointsConsumer, service.NotificationConsumer}
	}
	return []string{service.PointsConsumer}
}

func (b *BrokerOptions) notify() bool { return b.Notify || b.NotifyWebhook != "" }

func (o *Options) boardAdminOnly() bool {
	return o.Board.Board == "admin" || o.Board.Board == "auto" && !o.Servers.Embedded()
}

func rate(perSecond float64) handler.Rate {
	return handler.Rate{PerSecond: perSecond, Burst: max(1, int(perSecond))}
}
