package board

import (
	"context"
	"net"
)

type connKey struct{}

// WithConnection is for http.Server.ConnContext: it lets Stream find the connection that it writes to.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connection(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return c
}
