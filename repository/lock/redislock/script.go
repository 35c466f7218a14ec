package redislock

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

//go:embed acquire.lua
var acquireSource string

//go:embed hold.lua
var holdSource string

//go:embed release.lua
var releaseSource string

// script is a Lua script over any number of locks, each treated as if it were alone. Every script may be repeated without
// another effect: it sets what is to be, it does not count. That is what makes it safe to send one again when its reply
// was lost.
type script struct {
	source, digest any  // EVALSHA names it by its digest; boxed once, for they go into every command
	args           int  // that each lock has
	fenced         bool // it grants tokens: its last key is the fence
}

func newScript(source string, args int, fenced bool) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source: source, digest: hex.EncodeToString(sum[:]), args: args, fenced: fenced}
}

type scripts struct {
	acquire, hold, release *script
}

func newScripts() scripts {
	return scripts{
		acquire: newScript(acquireSource, 2, true),
		hold:    newScript(holdSource, 3, false),
		release: newScript(releaseSource, 3, false),
	}
}
