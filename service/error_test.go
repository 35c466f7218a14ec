package service

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestError(t *testing.T) {
	cause := errors.New("connection refused")
	for _, c := range []struct {
		err  error
		code Code
		is   []error
		not  []error
	}{
		{nil, "", nil, []error{ErrSoldOut}},
		{cause, CodeInternal, []error{cause}, []error{ErrUnavailable}},
		{ErrSoldOut, CodeSoldOut, []error{ErrSoldOut}, []error{ErrUnknown}},
		{&Error{Code: CodeSoldOut}, CodeSoldOut, []error{ErrSoldOut}, nil},
		{fmt.Errorf("placing: %w", ErrBusy), CodeBusy, []error{ErrBusy}, nil},
		{Unavailable(cause), CodeUnavailable, []error{ErrUnavailable, cause}, []error{ErrUnknown}},
		{Unknown(cause), CodeUnknown, []error{ErrUnknown, cause}, []error{ErrUnavailable}},
		{Invalid("title", "must be %d", 1), CodeInvalid, []error{&Error{Code: CodeInvalid}}, nil},
	} {
		if got := CodeOf(c.err); got != c.code {
			t.Errorf("%v has code %q, want %q", c.err, got, c.code)
		}
		for _, target := range c.is {
			if !errors.Is(c.err, target) {
				t.Errorf("%v is not %v", c.err, target)
			}
		}
		for _, target := range c.not {
			if errors.Is(c.err, target) {
				t.Errorf("%v is %v", c.err, target)
			}
		}
	}
	if text := Unknown(cause).Error(); !strings.Contains(text, string(CodeUnknown)) || !strings.Contains(text, cause.Error()) {
		t.Errorf("the log gets %q", text)
	}
	if ErrUnavailable.Err != nil || ErrUnknown.Err != nil {
		t.Error("a wrapped cause was left in the shared error")
	}
}

func TestOrderEvent_PayloadAndPoints(t *testing.T) {
	at := time.Date(2026, 11, 11, 8, 0, 0, 0, time.FixedZone("CST", 8*3600))
	o := Order{ID: 9007199254740993, VoucherID: 7, UserID: 1 << 60, Status: Paid, Version: 2, PriceCents: 1999}
	e := NewOrderEvent(OrderPaid, &o, at)
	e.PaymentID = "p1"
	got, err := e.Payload()
	want := `{"type":"ORDER_PAID","order_id":"9007199254740993","voucher_id":"7","user_id":"1152921504606846976",` +
		`"status":"paid","version":2,"price_cents":1999,"payment_id":"p1","occurred_at":"2026-11-11T00:00:00Z"}`
	if err != nil || got != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	for _, kind := range []EventType{OrderCreated, OrderPaid, OrderCancelled, OrderExpired, OrderRefundDue} {
		entry, ok := PointsFor(NewOrderEvent(kind, &o, at))
		if ok != (kind == OrderPaid) {
			t.Errorf("%s is worth points: %t", kind, ok)
		}
		if ok && (entry != PointsEntry{OrderID: o.ID, UserID: o.UserID, Points: 19}) {
			t.Errorf("%+v", entry)
		}
	}
	states := fmt.Sprint(Pending, Paid, Closed, Status(0), Cancelled, Expired, CloseReason(0))
	if states != "pending paid closed invalid cancelled expired " {
		t.Errorf("%q", states)
	}
}
