package main

// The services of docker-compose.yml, as drills name them.
const (
	gateway        = "nginx"
	shop1          = "shop-1"
	shop2          = "shop-2"
	eventsConsumer = "consumer"
	mysqlServer    = "mysql"
	redisMaster    = "redis-1" // at first
	broker         = "rabbitmq"
)

var (
	redisServers = []string{"redis-1", "redis-2", "redis-3"}
	sentinels    = []string{"sentinel-1", "sentinel-2", "sentinel-3"}
)

// sentinelMaster is what the Sentinels call what they watch.
const sentinelMaster = "seckill"

// lockProfile is what a lock needs beside what is always there.
var lockProfile = map[string]string{"redlock": "redlock", "zookeeper": "zookeeper"}

// Build tags of shops that nobody gets but a drill.
const (
	guardOffTag = "seckill_guard_off" // without its guard
	clockTag    = "seckill_clock"     // its ids take the time of day from a clock that can be set
)
