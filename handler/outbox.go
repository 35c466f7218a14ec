package handler

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

type outboxEntry struct {
	EventID   idgen.ID  `json:"event_id"`
	Type      string    `json:"type"`
	OrderID   idgen.ID  `json:"order_id"`
	Version   int       `json:"version"`
	State     string    `json:"state"`
	Attempts  int       `json:"attempts"`
	Due       time.Time `json:"due"`
	CreatedAt time.Time `json:"created_at"`
	Payload   rawJSON   `json:"payload"`
}

// rawJSON is a document that is passed on as it is.
type rawJSON []byte

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

func viewEntry(e *outbox.Entry) outboxEntry {
	return outboxEntry{
		EventID: idgen.ID(e.ID), Type: e.Type, OrderID: idgen.ID(e.Key), Version: e.Version,
		State: string(e.State), Attempts: e.Attempts, Due: e.Due.UTC(), CreatedAt: e.CreatedAt.UTC(), Payload: rawJSON(e.Payload),
	}
}

type outboxPage struct {
	Events []outboxEntry `json:"events"`
	Next   idgen.ID      `json:"next,omitzero"`
}

// listOutbox is GET /api/v1/admin/outbox?state=.
func (h *Handler) listOutbox(c *gin.Context) error {
	before, limit, err := page(c)
	if err != nil {
		return err
	}
	state := outbox.State(c.DefaultQuery("state", string(outbox.Failed)))
	if state != outbox.Pending && state != outbox.Sent && state != outbox.Failed {
		return invalid("state", "must be pending, sent or failed")
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	entries, err := h.cfg.Outbox.List(ctx, state, int64(before), limit)
	if err != nil {
		return err
	}
	answer := outboxPage{Events: make([]outboxEntry, len(entries))}
	for i := range entries {
		answer.Events[i] = viewEntry(&entries[i])
	}
	if len(entries) == limit {
		answer.Next = answer.Events[limit-1].EventID
	}
	return respond(c, http.StatusOK, answer)
}

// showOutbox is GET /api/v1/admin/outbox/{id}.
func (h *Handler) showOutbox(c *gin.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	entry, found, err := h.cfg.Outbox.Show(ctx, int64(id))
	switch {
	case err != nil:
		return err
	case !found:
		return service.ErrNotFound
	}
	return respond(c, http.StatusOK, viewEntry(&entry))
}

type retryAnswer struct {
	Due int `json:"due"` // events that are due now and were not before
}

// retryOutbox is POST /api/v1/admin/outbox/{id}/retry. Asking again does no harm.
func (h *Handler) retryOutbox(c *gin.Context) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	id, err := pathID(c)
	if err != nil {
		return err
	}
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	n, err := h.cfg.Outbox.Retry(ctx, []int64{int64(id)})
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, retryAnswer{n})
}
