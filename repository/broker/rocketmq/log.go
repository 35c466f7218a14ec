package rocketmq

import (
	"context"
	"log/slog"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// logOnce: the client library has one logger for the whole process, and reads it without a lock.
var logOnce sync.Once

func redirectLog(log *slog.Logger) {
	logOnce.Do(func() { rlog.SetLogger(libraryLog{log}) })
}

// libraryLog passes on what is worth a line. The library calls each reconnection an error; it is a warning here.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Debug(string, map[string]interface{}) {}
func (l libraryLog) Info(string, map[string]interface{})  {}
func (l libraryLog) Warning(msg string, fields map[string]interface{}) {
	l.write(slog.LevelDebug, msg, fields)
}
func (l libraryLog) Error(msg string, fields map[string]interface{}) {
	l.write(slog.LevelWarn, msg, fields)
}
func (l libraryLog) Fatal(msg string, fields map[string]interface{}) {
	l.write(slog.LevelError, msg, fields)
}
func (l libraryLog) Level(string)            {}
func (l libraryLog) OutputPath(string) error { return nil }

func (l libraryLog) write(level slog.Level, msg string, fields map[string]interface{}) {
	attrs := make([]slog.Attr, 0, len(fields))
	for name, value := range fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	l.log.LogAttrs(context.Background(), level, "rocketmq: "+msg, attrs...)
}
