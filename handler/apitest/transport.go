// Package apitest checks the shop's API against openapi.yaml. It is for tests.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"seckill/handler"
)

// Transport returns a RoundTripper that sends requests through base (nil: http.DefaultTransport) and fails the test,
// without stopping it, if
//
//   - the description does not have the answer for the route: its status, headers, type or document;
//   - a request that the description does not allow succeeds;
//   - an unknown path or method is answered with anything other than 404 or 405;
//   - an error below /api/ is not problem+json.
//
// It reads answers to their end. It is safe for use by many goroutines, until the test ends.
func Transport(t testing.TB, base http.RoundTripper) http.RoundTripper {
	t.Helper()
	description, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{description: description, base: base, report: func(err error) { t.Errorf("%v", err) }}
}

// Document returns the description, which is valid.
func Document() (*openapi3.T, error) {
	description, err := load()
	return description.doc, err
}

type description struct {
	doc    *openapi3.T
	router routers.Router
}

// load reads the description once for all tests of a program.
var load = sync.OnceValues(func() (description, error) {
	doc, err := openapi3.NewLoader().LoadFromData(handler.OpenAPI())
	if err != nil {
		return description{}, fmt.Errorf("apitest: openapi.yaml: %w", err)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation()); err != nil {
		return description{}, fmt.Errorf("apitest: openapi.yaml: %w", err)
	}
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder) // unknown to the library
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return description{}, fmt.Errorf("apitest: openapi.yaml: %w", err)
	}
	return description{doc, router}, nil
})

type transport struct {
	description
	base   http.RoundTripper
	report func(error)
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := takeBody(r)
	if err != nil {
		return nil, err
	}
	sent := r.Clone(r.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	if len(body) == 0 {
		sent.Body = http.NoBody
	}
	answer, err := t.base.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	document, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	if err := t.check(r, body, answer, document); err != nil {
		t.report(fmt.Errorf("%s %s with %.300q was answered %d %.500q: %w", r.Method, r.URL, body, answer.StatusCode, document, err))
	}
	return answer, nil
}

func takeBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// check returns an error if the exchange does not match the description.
func (t *transport) check(r *http.Request, body []byte, answer *http.Response, document []byte) error {
	route, params, err := t.router.FindRoute(r)
	if err != nil {
		return t.checkUnknown(r, answer, document)
	}
	options := &openapi3filter.Options{
		AuthenticationFunc:                openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus:             true,
		RejectWhenRequestBodyNotSpecified: true,
	}
	received := r.Clone(context.WithoutCancel(r.Context()))
	received.Body = io.NopCloser(bytes.NewReader(body))
	received.ContentLength = int64(len(body))
	request := &openapi3filter.RequestValidationInput{Request: received, PathParams: params, Route: route, Options: options}
	if err := openapi3filter.ValidateRequest(received.Context(), request); err != nil && answer.StatusCode < 300 {
		return fmt.Errorf("success, although the description does not allow the request: %w", err)
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: answer.StatusCode, Header: answer.Header, Options: options,
	}
	return openapi3filter.ValidateResponse(received.Context(), response.SetBodyBytes(document))
}

// checkUnknown checks the answer to a request that the description does not have.
func (t *transport) checkUnknown(r *http.Request, answer *http.Response, document []byte) error {
	if answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusMethodNotAllowed {
		return errors.New("the description does not have this operation")
	}
	if answer.StatusCode == http.StatusMethodNotAllowed && answer.Header.Get("Allow") == "" {
		return errors.New("405 without Allow")
	}
	if r.Method == http.MethodHead || !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil
	}
	return t.checkProblem(answer, document)
}

func (t *transport) checkProblem(answer *http.Response, document []byte) error {
	if got := answer.Header.Get("Content-Type"); got != "application/problem+json" {
		return fmt.Errorf("an error of type %q", got)
	}
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return err
	}
	return t.doc.Components.Schemas["Problem"].Value.VisitJSON(value)
}
