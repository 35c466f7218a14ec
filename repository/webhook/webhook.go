// Package webhook posts JSON to an address that an operator configured: alerts and notifications leave the shop here.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Webhook posts JSON to one address.
type Webhook struct {
	url    string
	client *http.Client
}

// requestTimeout bounds one attempt.
const requestTimeout = 5 * time.Second

// pauses are the times between attempts.
var pauses = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// New returns a webhook for an http or https address.
func New(address string) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("webhook: %q is not an http or https address", u.Redacted())
	}
	return &Webhook{url: address, client: &http.Client{Timeout: requestTimeout}}, nil
}

// Post sends v as JSON. It tries again after 1, 2 and 4 s if there was no answer or the answer was 429 or 5xx. Every
// attempt carries key as its Idempotency-Key, so that the receiver can ignore a repetition; an empty key sends no header.
func (w *Webhook) Post(ctx context.Context, key string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	for attempt := 0; ; attempt++ {
		retryable, err := w.post(ctx, key, body)
		if err == nil || !retryable || attempt == len(pauses) {
			return err
		}
		select {
		case <-time.After(pauses[attempt]):
		case <-ctx.Done():
			return err
		}
	}
}

// post sends once and reports whether another attempt may succeed.
func (w *Webhook) post(ctx context.Context, key string, body []byte) (retryable bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("webhook: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return true, fmt.Errorf("webhook: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be reused
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	retryable = resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500
	return retryable, fmt.Errorf("webhook: answered %s", resp.Status)
}
