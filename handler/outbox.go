package handler

import (
	"encoding/json/jsontext"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// eventJSON is an event in an answer.
type eventJSON struct {
	EventID   idgen.ID       `json:"event_id"`
	Type      string         `json:"type"`
	OrderID   idgen.ID       `json:"order_id"`
	Version   int            `json:"version"`
	State     string         `json:"state"`
	Attempts  int            `json:"attempts"`
	Due       time.Time      `json:"due"`
	CreatedAt time.Time      `json:"created_at"`
	Payload   jsontext.Value `json:"payload"`
}

func newEventJSON(e *outbox.Entry) eventJSON {
	return eventJSON{
		EventID: idgen.ID(e.ID), Type: e.Type, OrderID: idgen.ID(e.Key), Version: e.Version,
		State: string(e.State), Attempts: e.Attempts, Due: e.Due.UTC(), CreatedAt: e.CreatedAt.UTC(), Payload: jsontext.Value(e.Payload),
	}
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
	entries, err := h.cfg.Outbox.List(c.Request.Context(), state, int64(before), limit)
	if err != nil {
		return err
	}
	list := struct {
		Events []eventJSON `json:"events"`
		Next   idgen.ID    `json:"next,omitzero"`
	}{}
	for i := range entries {
		list.Events = append(list.Events, newEventJSON(&entries[i]))
	}
	if len(entries) == limit {
		list.Next = list.Events[limit-1].EventID
	}
	return respond(c, http.StatusOK, list)
}

// getOutbox is GET /api/v1/admin/outbox/{id}.
func (h *Handler) getOutbox(c *gin.Context, id idgen.ID) error {
	entry, found, err := h.cfg.Outbox.Show(c.Request.Context(), int64(id))
	switch {
	case err != nil:
		return err
	case !found:
		return service.ErrNotFound
	}
	return respond(c, http.StatusOK, newEventJSON(&entry))
}

// retryOutbox is POST /api/v1/admin/outbox/{id}/retry. Repeating it is safe.
func (h *Handler) retryOutbox(c *gin.Context, id idgen.ID) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	n, err := h.cfg.Outbox.Retry(c.Request.Context(), []int64{int64(id)})
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, struct {
		Due int `json:"due"` // events that are due now and were not before
	}{n})
}
