package loadtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"
)

// Outcome is what became of a request: how it was answered, or how it failed to be.
type Outcome string

// The outcomes that are not codes of the API. Every other one is the code of a problem, such as "sold-out".
const (
	Placed   Outcome = "placed"   // 201: a new order
	Replayed Outcome = "replayed" // 200: the order of an earlier request with the same key
	Done     Outcome = "done"     // 2xx of anything else

	Timeout     Outcome = "timeout"     // no answer in time
	Broken      Outcome = "broken"      // the connection broke before the answer was there
	Gateway     Outcome = "gateway"     // a 5xx that is not the shop's own: something in between spoke for it
	Unreachable Outcome = "unreachable" // there was no connection: nothing was sent
	Unexpected  Outcome = "unexpected"  // an answer that the API does not have
)

// Class is what an outcome means to the buyer.
type Class string

// The classes of outcomes.
const (
	Accepted Class = "accepted" // there is an order, and the buyer knows it
	Refused  Class = "refused"  // there is none, and the buyer knows that
	Unknown  Class = "unknown"  // repeating the same request will tell
	Failed   Class = "failed"   // nothing was done, and that is a fault
)

// Class sorts an outcome.
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

// Final tells whether the outcome of a repeated request says for good what became of it. Refusals that only say "not
// now" leave it open.
func (o Outcome) Final() bool {
	switch o {
	case Placed, Replayed, "sold-out", "already-ordered", "sale-not-started", "sale-ended", "not-found", "idempotency-key-reuse":
		return true
	}
	return false
}

// Answer is what came back for a request.
type Answer struct {
	Outcome   Outcome
	Status    int    // 0 if there was no answer
	Order     string // id of the order that was placed, or that stands in the way
	RequestID string // with "outcome-unknown": the key to repeat the request with
	Body      []byte // of answers other than to Place
	Err       error  // why there was no answer
	Start     time.Time
	Took      time.Duration
}

// errAnswer makes an error of an answer that is not Accepted.
func (a *Answer) error(what string) error {
	if a.Outcome.Class() == Accepted {
		return nil
	}
	return &AnswerError{What: what, Answer: *a}
}

// AnswerError is an answer that was hoped to be another.
type AnswerError struct {
	What   string
	Answer Answer
}

func (e *AnswerError) Error() string {
	text := e.What + ": " + string(e.Answer.Outcome)
	if e.Answer.Err != nil {
		return text + ": " + e.Answer.Err.Error()
	}
	if detail := parseProblem(e.Answer.Body).Detail; detail != "" {
		text += ": " + detail
	}
	return text
}

func (e *AnswerError) Unwrap() error { return e.Answer.Err }

// problem is what the generator reads of an error.
type problem struct {
	Code      Outcome `json:"code"`
	Detail    string  `json:"detail"`
	RequestID string  `json:"request_id"`
	Order     struct {
		ID string `json:"id"`
	} `json:"order"`
}

func parseProblem(body []byte) (p problem) {
	_ = json.Unmarshal(body, &p) // no code means that it was none
	return p
}

// problems remembers those that are the same for everybody: on a hot voucher nearly all answers are one of them.
type problems struct {
	known atomic.Pointer[map[string]problem]
}

// most is how many problems are remembered. The API has about twenty.
const most = 32

func (c *problems) parse(body []byte) problem {
	known := c.known.Load()
	if known != nil {
		if p, ok := (*known)[string(body)]; ok {
			return p
		}
	}
	p := parseProblem(body)
	if p.Code == "" || p.Order.ID != "" || p.RequestID != "" {
		return p
	}
	next := map[string]problem{string(body): p}
	if known != nil {
		if len(*known) >= most {
			return p
		}
		for k, v := range *known {
			next[k] = v
		}
	}
	c.known.CompareAndSwap(known, &next) // whoever loses will learn it another time
	return p
}

var orderStart = []byte(`{"id":"`)

// parseOrderID reads the id of an order, at little cost where it stands first, as the shop writes it.
func parseOrderID(body []byte) (string, error) {
	if rest, ok := bytes.CutPrefix(body, orderStart); ok {
		if end := bytes.IndexByte(rest, '"'); end > 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
			return string(rest[:end]), nil
		}
	}
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
