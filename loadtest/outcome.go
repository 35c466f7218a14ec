package loadtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Outcome is the result of a request: the kind of its answer, or the reason why there is none.
type Outcome string

// The outcomes that are not error codes of the API. All others are such codes, for example "sold-out".
const (
	Placed   Outcome = "placed"   // 201: a new order
	Replayed Outcome = "replayed" // 200: the order of an earlier request with the same key
	Done     Outcome = "done"     // 2xx of any other request

	Timeout     Outcome = "timeout"     // no answer in time
	Broken      Outcome = "broken"      // the connection broke before the answer arrived
	Gateway     Outcome = "gateway"     // a 5xx that is not the shop's own: a proxy answered
	Unreachable Outcome = "unreachable" // no connection: nothing was sent
	Unexpected  Outcome = "unexpected"  // an answer that the API does not define
)

// Class is what an outcome means to the buyer.
type Class string

// The classes of outcomes.
const (
	Accepted Class = "accepted" // there is an order, and the buyer knows it
	Refused  Class = "refused"  // there is no order, and the buyer knows it
	Unknown  Class = "unknown"  // repeating the same request resolves it
	Failed   Class = "failed"   // nothing was done, and that is an error
)

// Class returns the class of the outcome.
func (o Outcome) Class() Class {
	switch o {
	case Placed, Replayed, Done:
		return Accepted
	case "outcome-unknown", Timeout, Broken, Gateway:
		return Unknown
	case "internal", "not-ready", Unreachable, Unexpected:
		return Failed
	}
	return Refused
}

// Final reports whether this answer to a repeated request ends the repeating. Refusals such as "busy" do not.
func (o Outcome) Final() bool {
	switch o {
	case Placed, Replayed, "sold-out", "already-ordered", "sale-not-started", "sale-ended", "not-found", "idempotency-key-reuse":
		return true
	}
	return false
}

// Answer is the result of a request.
type Answer struct {
	Outcome   Outcome
	Status    int    // 0 if there was no answer
	Order     string // id of the order that was placed, or that prevents another one
	RequestID string // with "outcome-unknown": the key to repeat the request with
	Body      []byte // of answers other than to Place
	Err       error  // why there was no answer
	Start     time.Time
	Took      time.Duration
}

// error returns nil if the request was accepted, else an error that says what failed and why.
func (a *Answer) error(what string) error {
	switch detail := parseProblem(a.Body).Detail; {
	case a.Outcome.Class() == Accepted:
		return nil
	case a.Err != nil:
		return fmt.Errorf("%s: %s: %w", what, a.Outcome, a.Err)
	case detail != "":
		return fmt.Errorf("%s: %s: %s", what, a.Outcome, detail)
	}
	return fmt.Errorf("%s: %s", what, a.Outcome)
}

// problem is what the load generator reads of an error response.
type problem struct {
	Code      Outcome `json:"code"`
	Detail    string  `json:"detail"`
	RequestID string  `json:"request_id"`
	Order     struct {
		ID string `json:"id"`
	} `json:"order"`
}

func parseProblem(body []byte) (p problem) {
	_ = json.Unmarshal(body, &p) // an empty code means that it is not a problem document
	return p
}

func parseOrderID(body []byte) (string, error) {
	var order struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return "", err
	}
	if order.ID == "" {
		return "", errors.New("an order without an id")
	}
	return order.ID, nil
}
