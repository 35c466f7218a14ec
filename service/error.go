package service

import (
	"errors"
	"fmt"
	"time"
)

// Code identifies a refusal. Codes are part of the API and never change.
type Code string

// The refusals of the shop. handler/openapi.yaml documents them for clients. A new refusal of PlaceOrder also belongs in
// orderOutcomes of cmd/internal/app/metrics.go; until then the metric counts it as internal.
const (
	CodeInvalid        Code = "invalid"               // a value is out of range; Field names it
	CodeNotFound       Code = "not-found"             // no such voucher or order, or another user's
	CodeNotStarted     Code = "sale-not-started"      // Voucher carries the times
	CodeEnded          Code = "sale-ended"            // Voucher carries the times
	CodeSoldOut        Code = "sold-out"              // no unit left at this moment
	CodeAlreadyOrdered Code = "already-ordered"       // Order is the live order
	CodeInProgress     Code = "in-progress"           // another request of the same user is being placed
	CodeKeyReused      Code = "idempotency-key-reuse" // the request id belongs to another order or change; Field names what differs, "" for the voucher
	CodeOrderPaid      Code = "order-paid"            // the order was paid already
	CodeOrderClosed    Code = "order-closed"          // the order was cancelled or has expired
	CodeRefundDue      Code = "refund-due"            // the payment could not be applied and was recorded for refund
	CodeBusy           Code = "busy"                  // too many orders wait; RetryAfter is when to come back
	CodeUnavailable    Code = "unavailable"           // a server does not answer; nothing was done
	CodeUnknown        Code = "outcome-unknown"       // it may or may not be done; the same request again resolves it
	CodeInternal       Code = "internal"              // a defect; nothing was done
)

// Error is the one error type of the use cases: a code for programs, a text for people, and details of the code.
//
// errors.Is compares codes, so errors.Is(err, service.ErrSoldOut) holds for every sold-out refusal.
type Error struct {
	Code       Code
	Message    string
	Field      string        // with CodeInvalid and CodeKeyReused: the name of the value as the client knows it
	RetryAfter time.Duration // with CodeBusy and CodeUnavailable: a hint, zero for none
	Order      *Order        // with CodeAlreadyOrdered, CodeOrderPaid, CodeOrderClosed, CodeRefundDue
	Voucher    *Voucher      // with CodeNotStarted and CodeEnded
	RequestID  string        // with CodeUnknown: the idempotency key that resolves the outcome
	Err        error         // the cause, for the log; never shown to clients
}

// Error is the text for the log: code, message and cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is a refusal with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// The refusals without details, prepared once: the frequent ones cost no allocation.
var (
	ErrNotFound    = &Error{Code: CodeNotFound, Message: "there is no such thing, or it is not yours to see"}
	ErrSoldOut     = &Error{Code: CodeSoldOut, Message: "sold out; a unit may come back when somebody does not pay"}
	ErrInProgress  = &Error{Code: CodeInProgress, Message: "another request of yours for this voucher is being placed; ask again in a moment"}
	ErrKeyReused   = &Error{Code: CodeKeyReused, Message: "this Idempotency-Key was used for another voucher; take a new one for a new order"}
	ErrBusy        = &Error{Code: CodeBusy, Message: "too many orders are waiting; come back in a moment", RetryAfter: time.Second}
	ErrUnavailable = &Error{Code: CodeUnavailable, Message: "the shop cannot reach a server that it needs; nothing was done", RetryAfter: time.Second}
	ErrUnknown     = &Error{Code: CodeUnknown, Message: "the outcome is not known; send the same request again to settle it", RetryAfter: time.Second}
)

// Invalid refuses the value of a field.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Unavailable wraps the cause of a failure that left nothing done.
func Unavailable(cause error) *Error {
	e := *ErrUnavailable
	e.Err = cause
	return &e
}

// Unknown wraps the cause of a failure that leaves the outcome open.
func Unknown(cause error) *Error {
	e := *ErrUnknown
	e.Err = cause
	return &e
}

// CodeOf returns the code of a refusal, "" for nil, and CodeInternal for any other error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
