package handler

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// maxIDs is the most ids that one request hands out.
const maxIDs = 10_000

type idsAnswer struct {
	IDs []idgen.ID `json:"ids"`
}

// makeIDs is POST /api/v1/admin/ids?n=: ids for somebody outside of the shop. They are unique whether they are used or
// not.
func (h *Handler) makeIDs(c *gin.Context) error {
	if err := h.decodeOptional(c, &struct{}{}); err != nil {
		return err
	}
	n := 1
	if text, given := c.GetQuery("n"); given {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxIDs {
			return invalid("n", fmt.Sprintf("must be a number from 1 to %d", maxIDs))
		}
	}
	ids := make([]idgen.ID, n)
	ctx, cancel := within(c, h.cfg.RequestTimeout)
	defer cancel()
	if err := h.cfg.IDs.NextN(ctx, ids); err != nil {
		return service.Unavailable(err)
	}
	return respond(c, http.StatusOK, idsAnswer{ids})
}

type decodedID struct {
	ID   idgen.ID `json:"id"`
	Kind string   `json:"kind"`
	*idgen.Parts
}

// decodeID is GET /api/v1/admin/ids/{id}: when and by whom a snowflake id was made. A segment's ids are numbers in a row
// and tell nothing.
func (h *Handler) decodeID(c *gin.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	answer := decodedID{ID: id, Kind: "segment"}
	if h.cfg.IDLayout != nil {
		parts := h.cfg.IDLayout.Decode(id)
		answer.Kind, answer.Parts = "snowflake", &parts
	}
	return respond(c, http.StatusOK, answer)
}
