package rocketmq

import (
	"context"
	"log/slog"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// logOnce guards the client library's only logger, which it reads without a lock.
var logOnce sync.Once

func redirectLog(log *slog.Logger) {
	logOnce.Do(func() { rlog.SetLogger(libraryLog{log}) })
}

// libraryLog passes the library's warnings and errors on, one level lower: the library logs each reconnection as an error.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Debug(string, map[string]any) {}
func (l libraryLog) Info(string, map[string]any)  {}
func (l libraryLog) Warning(msg string, fields map[string]any) {
	l.write(slog.LevelDebug, msg, fields)
}
func (l libraryLog) Error(msg string, fields map[string]any) {
	l.write(slog.LevelWarn, msg, fields)
}
func (l libraryLog) Fatal(msg string, fields map[string]any) {
	l.write(slog.LevelError, msg, fields)
}
func (l libraryLog) Level(string)            {}
func (l libraryLog) OutputPath(string) error { return nil }

func (l libraryLog) write(level slog.Level, msg string, fields map[string]any) {
	attrs := make([]slog.Attr, 0, len(fields))
	for name, value := range fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	l.log.LogAttrs(context.Background(), level, "rocketmq: "+msg, attrs...)
}
