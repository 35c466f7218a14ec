package handler

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// maxIDs is the maximum number of ids of one request.
const maxIDs = 10_000

// makeIDs is POST /api/v1/admin/ids?n=. It returns new ids for use outside the shop.
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
	if err := h.cfg.IDs.NextN(c.Request.Context(), ids); err != nil {
		return service.Unavailable(err)
	}
	return respond(c, http.StatusOK, struct {
		IDs []idgen.ID `json:"ids"`
	}{ids})
}

// decodeID is GET /api/v1/admin/ids/{id}. It returns the parts of a snowflake id; segment ids have none.
func (h *Handler) decodeID(c *gin.Context, id idgen.ID) error {
	answer := struct {
		ID   idgen.ID `json:"id"`
		Kind string   `json:"kind"`
		*idgen.Parts
	}{ID: id, Kind: "segment"}
	if h.cfg.IDLayout != nil {
		parts := h.cfg.IDLayout.Decode(id)
		answer.Kind, answer.Parts = "snowflake", &parts
	}
	return respond(c, http.StatusOK, answer)
}
