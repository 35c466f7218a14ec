package loadtest

import (
	"encoding/json"
	"fmt"
	"time"
)

// Voucher is a voucher as the API returns it.
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
}

// NewVoucher is the request that creates a voucher.
type NewVoucher struct {
	Title      string    `json:"title"`
	PriceCents int64     `json:"price_cents"`
	Stock      int64     `json:"stock"`
	UserLimit  int       `json:"user_limit"`
	PaySeconds int64     `json:"pay_seconds"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
}

// Order is what the load generator reads of an order.
type Order struct {
	ID        string `json:"id"`
	VoucherID string `json:"voucher_id"`
}

// CreateVoucher puts a voucher on sale; admin is a user whose token has the admin role.
func (c *Client) CreateVoucher(admin int64, v NewVoucher) (created Voucher, err error) {
	body, err := json.Marshal(v)
	if err != nil {
		return created, err
	}
	a := c.send(request{method: "POST", path: "/api/v1/admin/vouchers", user: admin, body: body}, keepBody)
	return created, a.into("create a voucher", &created)
}

// Voucher reads a voucher.
func (c *Client) Voucher(id string) (v Voucher, err error) {
	a := c.send(request{method: "GET", path: "/api/v1/vouchers/" + id}, keepBody)
	return v, a.into("read voucher "+id, &v)
}

// AddStock puts more units on sale.
func (c *Client) AddStock(admin int64, voucher string, units int64, key string) (v Voucher, err error) {
	body := fmt.Appendf(nil, `{"units":%d}`, units)
	a := c.send(request{method: "POST", path: "/api/v1/admin/vouchers/" + voucher + "/stock", user: admin, key: key, body: body}, keepBody)
	return v, a.into("add stock", &v)
}

// Audit returns the shop's own audit.
func (c *Client) Audit(admin int64) (verdict json.RawMessage, err error) {
	a := c.send(request{method: "GET", path: "/api/v1/admin/audit", user: admin}, keepBody)
	return a.Body, a.error("audit")
}

// Orders lists all orders of a user, newest first.
func (c *Client) Orders(user int64) (all []Order, err error) {
	before := ""
	for {
		a := c.send(request{method: "GET", path: "/api/v1/orders?limit=100" + before, user: user}, keepBody)
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

// into decodes the body of a successful answer.
func (a *Answer) into(what string, document any) error {
	if err := a.error(what); err != nil {
		return err
	}
	if err := json.Unmarshal(a.Body, document); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
