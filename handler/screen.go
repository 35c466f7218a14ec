package handler

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"seckill/handler/board"
	"seckill/service"
)

// Screen is what the handlers need of board.Board.
type Screen interface {
	Snapshot() []byte
	Stream(w http.ResponseWriter, r *http.Request) error
	Mark(text string)
}

// showBoard is GET /api/v1/board.
func (h *Handler) showBoard(c *gin.Context) error {
	write(c, http.StatusOK, typeJSON, h.cfg.Board.Snapshot())
	return nil
}

const boardStream = "/api/v1/board/stream"

// streamBoard is GET /api/v1/board/stream. It lasts as long as somebody watches, who comes back with a new token when the
// one that opened it expires.
func (h *Handler) streamBoard(c *gin.Context) error {
	watching := c.Request
	if h.cfg.BoardForAdmins {
		claims, err := h.authenticate(c.Request)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithDeadline(c.Request.Context(), claims.Expires)
		defer cancel()
		watching = c.Request.WithContext(ctx)
	}
	err := h.cfg.Board.Stream(c.Writer, watching)
	switch {
	case errors.Is(err, board.ErrFull):
		return notNow("as many watch the board as may; come back later")
	case errors.Is(err, board.ErrClosed):
		return notNow("the shop is shutting down")
	}
	return err
}

func notNow(detail string) error {
	p := newProblem(service.CodeBusy, detail)
	p.RetryAfter = 5
	return p
}

// maxMark bounds a note on the line of events, in characters.
const maxMark = 80

// markBoard is POST /api/v1/admin/board/marks.
func (h *Handler) markBoard(c *gin.Context) error {
	var body struct {
		Text string `json:"text"`
	}
	if err := h.decode(c, &body); err != nil {
		return err
	}
	if n := len([]rune(body.Text)); n == 0 || n > maxMark {
		return invalid("text", fmt.Sprintf("must have 1 to %d characters", maxMark))
	}
	h.cfg.Board.Mark(body.Text)
	c.Status(http.StatusNoContent)
	return nil
}
