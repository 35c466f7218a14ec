package repository

import (
	"maps"
	"testing"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// The trace of a change is stored with its event and returned by the claim, also if only some orders of a batch have one.
func TestOutbox_KeepsTraces(t *testing.T) {
	const first, second = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		voucher := onSale(t, db, 10, 1)
		traced, plain := placement(voucher, 1, ""), placement(voucher, 2, "")
		traced.TraceParent = first
		place(t, db, traced, plain)
		place(t, db, placement(voucher, 3, "")) // a batch without any

		ctx := service.WithTraceParent(t.Context(), second)
		paid, cancelled := nextID(), nextID()
		if _, err := NewOrders(db).Pay(ctx, traced.Order.ID, service.Payment{UserID: 1}, paid); err != nil {
			t.Fatal(err)
		}
		if _, err := NewOrders(db).Cancel(ctx, plain.Order.ID, 2, cancelled); err != nil {
			t.Fatal(err)
		}
		want := map[idgen.ID]string{traced.EventID: first, plain.EventID: "", paid: second, cancelled: second}
		got := map[idgen.ID]string{}
		batch := claim(t, NewOutbox(db), outbox.Claim{Limit: 10})
		for _, e := range batch.Events {
			got[idgen.ID(e.ID)] = e.TraceParent
			shown, found, err := NewOutbox(db).Show(t.Context(), e.ID)
			if err != nil || !found || shown.TraceParent != e.TraceParent {
				t.Errorf("Show returns the trace %q of event %d (%v, %v), claimed was %q", shown.TraceParent, e.ID, found, err, e.TraceParent)
			}
		}
		maps.DeleteFunc(got, func(id idgen.ID, _ string) bool { _, ours := want[id]; return !ours })
		if len(batch.Events) != 5 || !maps.Equal(got, want) {
			t.Errorf("%d events, with traces %v, want %v", len(batch.Events), got, want)
		}
	})
}
