package handler

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
)

// Codes of refusals that the use cases know nothing of. openapi.yaml explains them.
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

// statusOf is the one map from codes to HTTP. A key that was used for another voucher is a value that cannot be
// processed, as in draft-ietf-httpapi-idempotency-key-header; the other refusals of a well-formed order are conflicts.
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

// problem is the document of an error (RFC 9457). Its type is about:blank, which is left out; code tells errors apart.
type problem struct {
	Title      string       `json:"title"`
	Status     int          `json:"status"`
	Code       service.Code `json:"code"`
	Detail     string       `json:"detail"`
	Field      string       `json:"field,omitempty"`
	RetryAfter int64        `json:"retry_after,omitempty"` // seconds
	RequestID  string       `json:"request_id,omitempty"`
	Order      *orderView   `json:"order,omitempty"`
	Voucher    *voucherView `json:"voucher,omitempty"`

	challenge string // WWW-Authenticate
	hangUp    bool   // the rest of the body is not worth reading
}

func (p *problem) Error() string { return string(p.Code) + ": " + p.Detail }

func newProblem(code service.Code, detail string) *problem {
	status := statusOf[code]
	return &problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// The refusals of this package that never differ.
var (
	noSuchRoute      = newProblem(service.CodeNotFound, "there is no such resource; see /docs/ for those that exist")
	noSuchID         = newProblem(service.CodeNotFound, service.ErrNotFound.Message)
	methodNotAllowed = newProblem(codeMethodNotAllowed, "the resource does not have this method; see the Allow header")
	internal         = newProblem(service.CodeInternal, "something went wrong on our side; it has been logged")
)

func invalid(field, detail string) *problem {
	p := newProblem(service.CodeInvalid, field+" "+detail)
	p.Field = field
	return p
}

func rateLimited(who string, wait time.Duration) *problem {
	p := newProblem(codeRateLimited, fmt.Sprintf("too many requests from %s; come back later", who))
	p.RetryAfter = wholeSeconds(wait)
	return p
}

// wholeSeconds rounds up: who comes back earlier is refused again.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// problemOf explains an error to the client. What it does not know is internal: its text is for the log only.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var e *service.Error
	if !errors.As(err, &e) || statusOf[e.Code] == 0 || e.Code == service.CodeInternal {
		return internal
	}
	p = newProblem(e.Code, e.Message)
	p.Field, p.RequestID, p.RetryAfter = e.Field, e.RequestID, wholeSeconds(e.RetryAfter)
	if p.Status == http.StatusServiceUnavailable {
		p.RetryAfter = max(1, p.RetryAfter)
	}
	if e.Order != nil {
		p.Order = viewOrder(e.Order)
	}
	if e.Voucher != nil {
		p.Voucher = viewVoucher(e.Voucher)
	}
	switch {
	case e.Code == service.CodeKeyReused && e.Field == "":
		p.Field = headerKey
	case e.Code == service.CodeInvalid && e.Field != "":
		p.Detail = e.Field + " " + e.Message
	case e.Code == service.CodeUnknown && e.RequestID != "":
		p.Detail = "the outcome is not known; send the same request again, with the header " +
			headerKey + ": " + e.RequestID + ", to settle it"
	}
	return p
}

// preparedProblem is a problem in the form in which it is sent.
type preparedProblem struct {
	status     int
	retryAfter []string
	body       []byte
}

// prepareProblems renders the refusals that are the same for everybody: on a hot voucher nearly all answers are one of
// them.
func prepareProblems() map[*service.Error]preparedProblem {
	prepared := map[*service.Error]preparedProblem{}
	for _, e := range []*service.Error{
		service.ErrSoldOut, service.ErrInProgress, service.ErrBusy, service.ErrNotFound, service.ErrKeyReused,
	} {
		prepared[e] = problemOf(e).prepare()
	}
	return prepared
}

func (p *problem) prepare() preparedProblem {
	body, err := json.Marshal(p)
	if err != nil { // an order or voucher that is not one
		return internal.prepare()
	}
	r := preparedProblem{status: p.Status, body: body}
	if p.RetryAfter > 0 {
		r.retryAfter = []string{strconv.FormatInt(p.RetryAfter, 10)}
	}
	return r
}

// fail answers an error.
func (h *Handler) fail(c *gin.Context, err error) {
	if e, ok := err.(*service.Error); ok {
		if r, ok := h.prepared[e]; ok {
			r.write(c)
			return
		}
	}
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		_ = c.Error(err) // for the log
	}
	if p.challenge != "" {
		c.Header("WWW-Authenticate", p.challenge)
	}
	if p.hangUp {
		c.Header("Connection", "close")
	}
	p.prepare().write(c)
}

func (r preparedProblem) write(c *gin.Context) {
	if r.retryAfter != nil {
		c.Writer.Header()["Retry-After"] = r.retryAfter
	}
	write(c, r.status, typeProblem, r.body)
}
