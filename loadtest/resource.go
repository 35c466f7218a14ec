package loadtest

import (
	"encoding/json"
	"fmt"
	"time"
)

// Voucher is a voucher as the API shows it.
type Voucher struct {
	ID         string    `json:"id"`
	Title      string    `json:"title"`
	PriceCents int64     `json:"price_cents"`
	PaySeconds int64     `json:"pay_seconds"`
	UserLimit  int       `json:"user_limit"`
	Total      int64     `json:"total"`
	Stock      int64     `json:"stock"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
	ServerTime time.Time `json:"server_time"`
}

// NewVoucher is a voucher to be put on sale.
type NewVoucher struct {
	Title      string    `json:"title"`
	PriceCents int64     `json:"price_cents"`
	Stock      int64     `json:"stock"`
	UserLimit  int       `json:"user_limit"`
	PaySeconds int64     `json:"pay_seconds"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
}

// Order is an order as the API shows it.
type Order struct {
	ID          string    `json:"id"`
	VoucherID   string    `json:"voucher_id"`
	UserID      string    `json:"user_id"`
	RequestID   string    `json:"request_id"`
	Status      string    `json:"status"`
	CloseReason string    `json:"close_reason"`
	CreatedAt   time.Time `json:"created_at"`
	ClosedAt    time.Time `json:"closed_at"`
}

// CreateVoucher puts a voucher on sale; admin is the user of an admin's token.
func (c *Client) CreateVoucher(admin int64, v NewVoucher) (created Voucher, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return created, err
	}
	a := c.send(request{method: "POST", path: "/api/v1/admin/vouchers", user: admin, body: body}, keep)
	return created, a.into("create a voucher", &created)
}

// Voucher reads a voucher.
func (c *Client) Voucher(id string) (v Voucher, err error) {
	a := c.send(request{method: "GET", path: "/api/v1/vouchers/" + id}, keep)
	return v, a.into("read voucher "+id, &v)
}

// AddStock puts more units on sale.
func (c *Client) AddStock(admin int64, voucher string, units int64, key string) (v Voucher, err error) {
	body := fmt.Appendf(nil, `{"units":%d}`, units)
	a := c.send(request{method: "POST", path: "/api/v1/admin/vouchers/" + voucher + "/stock", user: admin, key: key, body: body}, keep)
	return v, a.into("add stock", &v)
}

// Audit asks the shop for its own verdict.
func (c *Client) Audit(admin int64) (verdict json.RawMessage, err error) {
	a := c.send(request{method: "GET", path: "/api/v1/admin/audit", user: admin}, keep)
	return a.Body, a.error("audit")
}

// Orders lists all orders of a user, newest first.
func (c *Client) Orders(user int64) (all []Order, err error) {
	before := ""
	for {
		a := c.send(request{method: "GET", path: "/api/v1/orders?limit=100" + before, user: user}, keep)
		var page struct {
			Orders []Order `json:"orders"`
			Next   string  `json:"next"`
		}
		if err := a.into("list orders", &page); err != nil {
			return nil, err
		}
		all = append(all, page.Orders...)
		if page.Next == "" {
			return all, nil
		}
		before = "&before=" + page.Next
	}
}

// into reads the document of a successful answer.
func (a *Answer) into(what string, document any) error {
	if err := a.error(what); err != nil {
		return err
	}
	if err := json.Unmarshal(a.Body, document); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
