package handler

import (
	"encoding/json"
	"testing"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// FuzzOrderJSON holds the answer that is written by hand against the one that encoding/json writes.
func FuzzOrderJSON(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3), "key", int8(1), int8(0), int64(4900), int64(1764521746123), int64(900_000), int64(0), int64(0))
	f.Add(int64(1<<62), int64(7), int64(8), "a\"b\\c<d>&~ e\u2028é\x00\xff", int8(3), int8(2), int64(-1), int64(0), int64(0), int64(0), int64(-5))
	f.Add(int64(1), int64(2), int64(3), "", int8(2), int8(0), int64(0), int64(1764521746000), int64(0), int64(1764521746010), int64(0))
	f.Fuzz(func(t *testing.T, id, voucher, user int64, request string, status, reason int8, price, created, payBy, paid, closed int64) {
		at := func(ms int64) time.Time { // zero stays zero
			if ms == 0 {
				return time.Time{}
			}
			return time.UnixMilli(ms % 200_000_000_000_000).In(time.FixedZone("elsewhere", 3600))
		}
		o := &service.Order{
			ID: idgen.ID(id), VoucherID: idgen.ID(voucher), UserID: service.UserID(user), RequestID: request,
			Status: service.Status(status), CloseReason: service.CloseReason(reason), PriceCents: price,
			CreatedAt: at(created), PayBy: at(payBy), PaidAt: at(paid), ClosedAt: at(closed),
		}
		want, err := json.Marshal(viewOrder(o))
		if err != nil {
			t.Skip("not an order: ", err)
		}
		if got := appendOrder(nil, o); string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func BenchmarkOrderJSON(b *testing.B) {
	now := time.Now().Truncate(time.Millisecond)
	o := &service.Order{
		ID: 1234567890123456789, VoucherID: 1234567890123456788, UserID: 1234567, RequestID: "ABCDEFGHIJ-123456", Status: service.Pending,
		PriceCents: 4900, CreatedAt: now, PayBy: now.Add(time.Hour),
	}
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			appendOrder(make([]byte, 0, 512), o)
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(viewOrder(o))
		}
	})
}
