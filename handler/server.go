package handler

import (
	"log/slog"
	"net/http"
	"time"
)

// Limits of a connection. Requests are small, so whoever is slower than this is not a buyer. WriteTimeout runs from the
// end of the request's header and has to leave room for the body and for Config.PlaceTimeout.
const (
	ReadHeaderTimeout = 5 * time.Second
	ReadTimeout       = 10 * time.Second // header and body
	WriteTimeout      = 30 * time.Second
	IdleTimeout       = 2 * time.Minute
	MaxHeaderBytes    = 16 << 10
)

// NewServer returns a server with these limits. Its own complaints go to the log as warnings.
func NewServer(addr string, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Addr: addr, Handler: h,
		ReadHeaderTimeout: ReadHeaderTimeout, ReadTimeout: ReadTimeout,
		WriteTimeout: WriteTimeout, IdleTimeout: IdleTimeout, MaxHeaderBytes: MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
