package handler

import (
	"encoding/json/v2"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
)

// Codes of errors that are found before the use case. openapi.yaml explains them.
const (
	codeMalformed        service.Code = "malformed"
	codeUnauthenticated  service.Code = "unauthenticated"
	codeForbidden        service.Code = "forbidden"
	codeMethodNotAllowed service.Code = "method-not-allowed"
	codeBodyTimeout      service.Code = "body-timeout"
	codeTooLarge         service.Code = "too-large"
	codeMediaType        service.Code = "unsupported-media-type"
	codeRateLimited      service.Code = "rate-limited"
	codeNotReady         service.Code = "not-ready"
)

// statusOf maps codes to HTTP status codes. A key that was used for another voucher is 422 as in
// draft-ietf-httpapi-idempotency-key-header; other refusals of a well-formed order are conflicts.
var statusOf = map[service.Code]int{
	codeMalformed:              http.StatusBadRequest,
	codeUnauthenticated:        http.StatusUnauthorized,
	codeForbidden:              http.StatusForbidden,
	service.CodeNotFound:       http.StatusNotFound,
	codeMethodNotAllowed:       http.StatusMethodNotAllowed,
	codeBodyTimeout:            http.StatusRequestTimeout,
	service.CodeNotStarted:     http.StatusConflict,
	service.CodeEnded:          http.StatusConflict,
	service.CodeSoldOut:        http.StatusConflict,
	service.CodeAlreadyOrdered: http.StatusConflict,
	service.CodeInProgress:     http.StatusConflict,
	service.CodeOrderPaid:      http.StatusConflict,
	service.CodeOrderClosed:    http.StatusConflict,
	service.CodeRefundDue:      http.StatusConflict,
	codeTooLarge:               http.StatusRequestEntityTooLarge,
	codeMediaType:              http.StatusUnsupportedMediaType,
	service.CodeInvalid:        http.StatusUnprocessableEntity,
	service.CodeKeyReused:      http.StatusUnprocessableEntity,
	codeRateLimited:            http.StatusTooManyRequests,
	service.CodeInternal:       http.StatusInternalServerError,
	service.CodeBusy:           http.StatusServiceUnavailable,
	service.CodeUnavailable:    http.StatusServiceUnavailable,
	service.CodeUnknown:        http.StatusServiceUnavailable,
	codeNotReady:               http.StatusServiceUnavailable,
}

// problem is an error as an RFC 9457 document. The type is about:blank and therefore left out; clients decide by code.
type problem struct {
	Title      string       `json:"title"`
	Status     int          `json:"status"`
	Code       service.Code `json:"code"`
	Detail     string       `json:"detail"`
	Field      string       `json:"field,omitempty"`
	RetryAfter int64        `json:"retry_after,omitzero"` // seconds
	RequestID  string       `json:"request_id,omitempty"`
	Order      *orderJSON   `json:"order,omitzero"`
	Voucher    *voucherJSON `json:"voucher,omitzero"`

	challenge       string // the header WWW-Authenticate
	closeConnection bool   // do not read the rest of the body
}

func (p *problem) Error() string { return string(p.Code) + ": " + p.Detail }

func newProblem(code service.Code, detail string) *problem {
	status := statusOf[code]
	return &problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

func invalid(field, detail string) *problem {
	p := newProblem(service.CodeInvalid, field+" "+detail)
	p.Field = field
	return p
}

var (
	errNoSuchRoute      = newProblem(service.CodeNotFound, "there is no such resource")
	errMethodNotAllowed = newProblem(codeMethodNotAllowed, "the resource does not have this method; see the Allow header")
	errInternal         = newProblem(service.CodeInternal, "internal error; it has been logged")
)

// problemOf converts an error for the client. Unknown errors become errInternal; their text is only logged.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	e, ok := errors.AsType[*service.Error](err)
	if !ok || statusOf[e.Code] == 0 || e.Code == service.CodeInternal {
		return errInternal
	}
	p := newProblem(e.Code, e.Message)
	p.Field, p.RequestID, p.RetryAfter = e.Field, e.RequestID, wholeSeconds(e.RetryAfter)
	if p.Status == http.StatusServiceUnavailable {
		p.RetryAfter = max(1, p.RetryAfter)
	}
	if e.Order != nil {
		p.Order = newOrderJSON(e.Order)
	}
	if e.Voucher != nil {
		p.Voucher = newVoucherJSON(e.Voucher)
	}
	switch {
	case e.Code == service.CodeKeyReused && e.Field == "":
		p.Field = headerIdempotencyKey
	case e.Code == service.CodeInvalid && e.Field != "":
		p.Detail = e.Field + " " + e.Message
	case e.Code == service.CodeUnknown && e.RequestID != "":
		p.Detail = "the outcome is not known; to resolve it, send the same request again with the header " +
			headerIdempotencyKey + ": " + e.RequestID
	}
	return p
}

// wholeSeconds rounds up, so that clients do not come back too early.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// fail answers with an error and ends the request.
func (h *Handler) fail(c *gin.Context, err error) {
	c.Abort()
	p := problemOf(err)
	body, marshalErr := json.Marshal(p)
	if marshalErr != nil { // an invalid order or voucher
		err, p = errors.Join(err, marshalErr), errInternal
		body, _ = json.Marshal(p)
	}
	if p.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
	}
	if p.challenge != "" {
		c.Header("WWW-Authenticate", p.challenge)
	}
	if p.closeConnection {
		c.Header("Connection", "close")
	}
	if p.RetryAfter > 0 {
		c.Header("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	send(c, p.Status, typeProblem, body)
}

// respond answers with a JSON document.
func respond(c *gin.Context, status int, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	send(c, status, typeJSON, body)
	return nil
}

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

func send(c *gin.Context, status int, contentType string, body []byte) {
	c.Header("Content-Type", contentType)
	c.Status(status)
	_, _ = c.Writer.Write(body) // an error means that the client is gone
}
