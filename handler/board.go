package handler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"seckill/handler/board"
	"seckill/service"
)

// getBoard is GET /api/v1/board.
func (h *Handler) getBoard(c *gin.Context) error {
	send(c, http.StatusOK, typeJSON, h.cfg.Board.Snapshot())
	return nil
}

const boardStream = "/api/v1/board/stream"

// isStream reports whether a request is long-lived (server-sent events); its duration is not a latency.
func isStream(c *gin.Context) bool { return c.FullPath() == boardStream }

// streamBoard is GET /api/v1/board/stream. A stream that needs a token ends when the token expires.
func (h *Handler) streamBoard(c *gin.Context) error {
	if h.cfg.BoardForAdmins {
		ctx, cancel := context.WithDeadline(c.Request.Context(), claimsOf(c).Expires)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
	}
	err := h.cfg.Board.Stream(c.Writer, c.Request)
	switch {
	case errors.Is(err, board.ErrFull):
		return busy("the board has its maximum number of viewers; try again later")
	case errors.Is(err, board.ErrClosed):
		return busy("the shop is shutting down")
	}
	return err
}

func busy(message string) error {
	return &service.Error{Code: service.CodeBusy, Message: message, RetryAfter: 5 * time.Second}
}

// maxMark is the maximum length of a mark, in characters.
const maxMark = 80

// markBoard is POST /api/v1/admin/board/marks. It adds a note to the board's timeline.
func (h *Handler) markBoard(c *gin.Context) error {
	var body struct {
		Text string `json:"text"`
	}
	if err := h.decode(c, &body); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(body.Text); n == 0 || n > maxMark {
		return invalid("text", fmt.Sprintf("must have 1 to %d characters", maxMark))
	}
	h.cfg.Board.Mark(body.Text)
	c.Status(http.StatusNoContent)
	return nil
}
