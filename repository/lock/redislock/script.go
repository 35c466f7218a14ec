package redislock

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

//go:embed acquire.lua
var acquireSource string

//go:embed hold.lua
var holdSource string

//go:embed release.lua
var releaseSource string

// script is a Lua script and the digest that EVALSHA names it by. All of them may be repeated without another effect:
// they set what is to be, they do not count. That is what makes it safe to send one again when its reply was lost.
type script struct {
	source, digest any // boxed once, for they go into every command
}

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source: source, digest: hex.EncodeToString(sum[:])}
}

type scripts struct {
	acquire, hold, release script
}

func newScripts() scripts {
	return scripts{
		acquire: newScript(acquireSource),
		hold:    newScript(holdSource),
		release: newScript(releaseSource),
	}
}

// command builds EVALSHA, or EVAL where the server does not know the script yet.
func (s *script) command(load bool, keys, args []any) *redis.Cmd {
	words := make([]any, 3, 3+len(keys)+len(args))
	words[0], words[1] = "evalsha", s.digest
	if load {
		words[0], words[1] = "eval", s.source
	}
	words[2] = len(keys)
	words = append(append(words, keys...), args...)
	cmd := redis.NewCmd(context.Background(), words...)
	cmd.SetFirstKeyPos(3)
	return cmd
}
