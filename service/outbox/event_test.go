package outbox_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"seckill/service/outbox"
)

func headers(e outbox.Event) func(string) string {
	m := map[string]string{}
	for _, h := range outbox.Headers(e) {
		m[h.Name] = h.Value
	}
	return func(name string) string { return m[name] }
}

func TestEvent_HeadersRoundTrip(t *testing.T) {
	for _, e := range []outbox.Event{
		{ID: 1, Type: "T", Key: 2, Version: 3, Payload: []byte("{}"), CreatedAt: time.Unix(0, 0).UTC()},
		{ID: 4, Type: "T", Key: 5, Version: 6, CreatedAt: time.Unix(0, 0).UTC(), TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{ID: math.MaxInt64, Type: "秒杀", Key: math.MinInt64, Version: math.MaxInt32, CreatedAt: time.Date(2026, 2, 28, 23, 59, 59, 999999999, time.UTC)},
	} {
		got, err := outbox.ParseEvent(headers(e), e.Payload)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v (%v), want %+v", got, err, e)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add("1", "ORDER_PAID", "2", "3", "2026-01-02T03:04:05.678Z")
	f.Add("", "", "", "", "")
	f.Add("-1", "x", "9223372036854775808", "1e3", "yesterday")
	f.Fuzz(func(t *testing.T, id, kind, key, version, created string) {
		m := map[string]string{outbox.HeaderID: id, outbox.HeaderType: kind, outbox.HeaderKey: key, outbox.HeaderVersion: version, outbox.HeaderCreated: created}
		e, err := outbox.ParseEvent(func(name string) string { return m[name] }, nil)
		if err != nil {
			if !errors.Is(err, outbox.ErrPoison) {
				t.Errorf("%v is not ErrPoison", err)
			}
			return
		}
		again, err := outbox.ParseEvent(headers(e), nil)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%+v became %+v (%v)", e, again, err)
		}
	})
}
