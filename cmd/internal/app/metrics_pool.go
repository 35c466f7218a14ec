package app

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"seckill/repository"
)

// pool is what a pool of connections says of itself.
type pool struct {
	max, inUse, idle int
	waits            int64
	waited           time.Duration
}

// poolCollector reads a pool once for all its metrics.
type poolCollector struct {
	read                          func() pool
	connections, max, waits, took *prometheus.Desc
}

// watchPool adds the metrics of a pool of connections. Its name is "db" or "redis".
func (m *metrics) watchPool(name, to string, read func() pool) {
	describe := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("seckill_"+name+"_"+metric, help, labels, nil)
	}
	m.registry.MustRegister(&poolCollector{
		read:        read,
		connections: describe("connections", "Connections to "+to+", by whether they are in use.", "state"),
		max:         describe("connections_max", "Most connections to "+to+"."),
		waits:       describe("connection_waits_total", "Times that a connection to "+to+" had to be waited for."),
		took:        describe("connection_wait_seconds_total", "Time that was spent on waiting for a connection to "+to+"."),
	})
}

// Describe implements prometheus.Collector.
func (c *poolCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connections, c.max, c.waits, c.took} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *poolCollector) Collect(out chan<- prometheus.Metric) {
	p := c.read()
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(c.connections, p.inUse, "in_use")
	gauge(c.connections, p.idle, "idle")
	gauge(c.max, p.max)
	out <- prometheus.MustNewConstMetric(c.waits, prometheus.CounterValue, float64(p.waits))
	out <- prometheus.MustNewConstMetric(c.took, prometheus.CounterValue, p.waited.Seconds())
}

// watch adds the database's pool.
func (m *metrics) watch(db *repository.DB) {
	m.watchPool("db", "the database", func() pool {
		s := db.Stats()
		return pool{max: s.MaxOpenConnections, inUse: s.InUse, idle: s.Idle, waits: s.WaitCount, waited: s.WaitDuration}
	})
}

// watchRedis adds Redis's pool, if there is one.
func (m *metrics) watchRedis(client redis.UniversalClient) {
	sized, ok := client.(interface{ Options() *redis.Options })
	if !ok { // a cluster's client has a pool for each of its servers
		return
	}
	m.watchPool("redis", "Redis", func() pool {
		s := client.PoolStats()
		return pool{
			max: sized.Options().PoolSize, inUse: int(s.TotalConns) - int(s.IdleConns), idle: int(s.IdleConns),
			waits: int64(s.WaitCount), waited: time.Duration(s.WaitDurationNs),
		}
	})
}

// buildInfo tells which build this is.
func (f maker) buildInfo() {
	version, revision := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	f.gauge("build_info", "Which build this is; always 1.", "version", "revision", "goversion").
		WithLabelValues(version, revision, runtime.Version()).Set(1)
}
