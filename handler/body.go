package handler

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"

	"seckill/handler/jsonbody"
	"seckill/service"
)

// headerKey is the header by which a repeated request is known.
const headerKey = "Idempotency-Key"

// decode decodes the body into a struct; see jsonbody.Decode.
func (h *Handler) decode(c *gin.Context, into any) error { return h.decodeBody(c.Request, false, into) }

// decodeOptional also accepts a request without a body.
func (h *Handler) decodeOptional(c *gin.Context, into any) error {
	return h.decodeBody(c.Request, true, into)
}

func (h *Handler) decodeBody(r *http.Request, optional bool, into any) error {
	buffer := h.buffers.Get().(*[]byte)
	defer h.buffers.Put(buffer)
	body, err := h.readBody(r, *buffer)
	switch {
	case err != nil:
		return err
	case len(body) == 0 && optional:
		return nil
	case !isJSON(r.Header):
		return newProblem(codeMediaType, "the body must be JSON, with the header Content-Type: application/json")
	}
	return bodyProblem(jsonbody.Decode(body, into))
}

// readBody reads the whole body into buffer, which is one byte longer than a body may be.
func (h *Handler) readBody(r *http.Request, buffer []byte) ([]byte, error) {
	if r.ContentLength >= int64(len(buffer)) {
		return nil, h.tooLarge()
	}
	n, err := io.ReadFull(r.Body, buffer)
	switch {
	case err == nil:
		return nil, h.tooLarge()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && complete(r, n):
		return buffer[:n], nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(codeBodyTimeout, "the body did not arrive in time")
	default:
		return nil, newProblem(codeMalformed, "the body could not be read to its end")
	}
}

// complete tells the end of the body from that of the connection, which net/http reports with the same error.
func complete(r *http.Request, n int) bool { return r.ContentLength < 0 || int64(n) == r.ContentLength }

func (h *Handler) tooLarge() *problem {
	p := newProblem(codeTooLarge, fmt.Sprintf("the body may have %d bytes at most", h.cfg.BodyLimit))
	p.hangUp = true
	return p
}

// isJSON accepts UTF-8 only, the one encoding that JSON has (RFC 8259, section 8.1), and no compression.
func isJSON(header http.Header) bool {
	if len(header["Content-Encoding"]) > 0 {
		return false
	}
	values := header["Content-Type"]
	if len(values) != 1 {
		return false
	}
	if values[0] == typeJSON[0] {
		return true
	}
	mediaType, params, err := mime.ParseMediaType(values[0])
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	return err == nil && mediaType == typeJSON[0]
}

// bodyProblem explains an error of jsonbody.
func bodyProblem(err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *jsonbody.ValueError:
		return invalid(e.Field, e.Message)
	case *jsonbody.SyntaxError:
		p := newProblem(codeMalformed, e.Message)
		p.Field = e.Field
		return p
	default:
		return err
	}
}

// idempotencyKey returns the request's key, "" if it has none.
func idempotencyKey(header http.Header) (string, error) {
	values := header[headerKey]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], service.ValidRequestID(values[0])
	default:
		return "", invalid(headerKey, "must not be repeated")
	}
}
