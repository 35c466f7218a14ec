package redislock

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says where Redis is and how to speak to it.
type Config struct {
	Addrs            []string // one server, or the Sentinels, or seeds of a cluster
	SentinelMaster   string   // the master's name, if Addrs are Sentinels
	Cluster          bool     // Addrs are seeds of a Redis Cluster
	Username         string
	Password         string
	SentinelUsername string
	SentinelPassword string
	DB               int // not for a cluster
	TLS              *tls.Config
	// Timeout bounds a dial, and each read and write, of one attempt. Default 1 s.
	Timeout time.Duration
}

// NewClient returns a client of Redis; the caller closes it. It does not connect yet, so that a program can start while
// Redis is away.
//
// The client never repeats a command: a repetition that the Locker does not know of could arrive after the lock was
// released. The Locker repeats its scripts itself.
func NewClient(c Config) (redis.UniversalClient, error) {
	if len(c.Addrs) == 0 {
		return nil, errors.New("redislock: no address given")
	}
	if c.Cluster && (c.SentinelMaster != "" || c.DB != 0) {
		return nil, errors.New("redislock: a cluster has neither a Sentinel master nor a database number")
	}
	if !c.Cluster && c.SentinelMaster == "" && len(c.Addrs) > 1 {
		return nil, errors.New("redislock: several addresses need a Sentinel master or a cluster")
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Second
	}
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs:      c.Addrs,
		MasterName: c.SentinelMaster,
		Username:   c.Username, Password: c.Password,
		SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword,
		DB:            c.DB,
		TLSConfig:     c.TLS,
		IsClusterMode: c.Cluster,
		ClientName:    "seckill",

		MaxRetries:    -1,
		DialerRetries: 1,
		DialTimeout:   c.Timeout,
		ReadTimeout:   c.Timeout,
		WriteTimeout:  c.Timeout,
		PoolTimeout:   c.Timeout,

		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}), nil
}
