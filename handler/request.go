package handler

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"seckill/handler/jsonbody"
	"seckill/service"
	"seckill/service/idgen"
)

// decode decodes the body of a request into a struct; see jsonbody.Decode.
func (h *Handler) decode(c *gin.Context, into any) error {
	body, err := h.readBody(c)
	if err != nil {
		return err
	}
	return decodeBody(c, body, into)
}

// decodeOptional also accepts a request without a body.
func (h *Handler) decodeOptional(c *gin.Context, into any) error {
	body, err := h.readBody(c)
	if err != nil || len(body) == 0 {
		return err
	}
	return decodeBody(c, body, into)
}

func (h *Handler) readBody(c *gin.Context) ([]byte, error) {
	limit := int64(h.cfg.BodyLimit)
	if c.Request.ContentLength > limit { // do not wait for it
		return nil, h.tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, limit))
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, h.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(codeBodyTimeout, "the body did not arrive in time")
	default:
		return nil, newProblem(codeMalformed, "the body is incomplete")
	}
}

func (h *Handler) tooLarge() *problem {
	p := newProblem(codeTooLarge, fmt.Sprintf("the body may have at most %d bytes", h.cfg.BodyLimit))
	p.closeConnection = true
	return p
}

func decodeBody(c *gin.Context, body []byte, into any) error {
	if !isJSON(c.Request.Header) {
		return newProblem(codeMediaType, "the body must be JSON, with the header Content-Type: application/json")
	}
	err := jsonbody.Decode(body, into)
	if e, ok := errors.AsType[*jsonbody.ValueError](err); ok {
		return invalid(e.Field, e.Message)
	}
	if e, ok := errors.AsType[*jsonbody.SyntaxError](err); ok {
		p := newProblem(codeMalformed, e.Message)
		p.Field = e.Field
		return p
	}
	return err
}

// valueOr returns the value of an optional field.
func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// isJSON reports whether the body is JSON without compression. JSON is always UTF-8 (RFC 8259, section 8.1).
func isJSON(header http.Header) bool {
	values := header["Content-Type"]
	if len(values) != 1 || len(header["Content-Encoding"]) > 0 {
		return false
	}
	mediaType, params, err := mime.ParseMediaType(values[0])
	charset, ok := params["charset"]
	return err == nil && mediaType == typeJSON && (!ok || strings.EqualFold(charset, "utf-8"))
}

const headerIdempotencyKey = "Idempotency-Key"

// idempotencyKey returns the request's idempotency key, or "".
func idempotencyKey(header http.Header) (string, error) {
	values := header[headerIdempotencyKey]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], service.ValidRequestID(values[0])
	default:
		return "", invalid(headerIdempotencyKey, "must not be repeated")
	}
}

// defaultPage is the default number of rows of a page.
const defaultPage = 20

// page reads the query of a list: at most limit rows with ids below before; before is 0 for the first page.
func page(c *gin.Context) (before idgen.ID, limit int, err error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return 0, 0, newProblem(codeMalformed, "the query is malformed")
	}
	if query.Has("before") {
		if before, err = idgen.ParseID(query.Get("before")); err != nil {
			return 0, 0, invalid("before", "must be the id that the previous page returned as next")
		}
	}
	limit = defaultPage
	if query.Has("limit") {
		limit, err = strconv.Atoi(query.Get("limit"))
		if err != nil || limit < 1 || limit > service.MaxPage {
			return 0, 0, invalid("limit", fmt.Sprintf("must be a number from 1 to %d", service.MaxPage))
		}
	}
	return before, limit, nil
}
