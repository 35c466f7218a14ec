package handler_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"seckill/handler/token"
	"seckill/service"
)

// Every body is either placed as the order that it names, or refused as the client's error.
func FuzzPlaceOrder(f *testing.F) {
	shop := newFakeShop()
	h := newHandler(f, shop, nil)
	user := as(f, 42, token.User)
	f.Add([]byte(goodBody), "key", "application/json")
	f.Add([]byte(`{"voucher_id":"7","voucher_id":"8"}`), "", "application/json; charset=utf-8")
	f.Add([]byte("{\"VOUCHER_ID\":\"7\"}\xff"), "\x00", "text/json")
	f.Fuzz(func(t *testing.T, body []byte, key, mediaType string) {
		shop.note()
		w := record(h, http.MethodPost, place, string(body), append(user, "Idempotency-Key", key, "Content-Type", mediaType)...)
		switch w.Code {
		case http.StatusCreated:
			var order struct {
				VoucherID string `json:"voucher_id"`
			}
			if err := json.Unmarshal(body, &order); err != nil {
				t.Fatalf("placed for %q: %v", body, err)
			}
			placed := shop.called()[1].(service.PlaceRequest)
			if placed.VoucherID.String() != order.VoucherID || placed.UserID != 42 || placed.RequestID != key {
				t.Fatalf("%q with %q placed %+v", body, key, placed)
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
			var p struct{ Status int }
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || len(shop.called()) > 0 {
				t.Fatalf("%d %s, called %v", w.Code, w.Body, shop.called())
			}
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}
