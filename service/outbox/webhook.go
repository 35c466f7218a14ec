package outbox

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

// Webhook posts JSON to an address.
type Webhook struct {
	url    string
	client *http.Client
	pauses []time.Duration
}

// NewWebhook returns a webhook for an http or https address. A post that gets no answer within 5 s, or one that may
// pass (429 and 5xx), is tried again after 1, 2 and 4 s.
func NewWebhook(address string) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("webhook: %q is no http or https address", u.Redacted())
	}
	return &Webhook{
		url:    address,
		client: &http.Client{Timeout: 5 * time.Second},
		pauses: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
	}, nil
}

// Post sends v as JSON. key names what is told: a receiver that sees the same Idempotency-Key again may ignore it. An
// empty key sends none.
func (w *Webhook) Post(ctx context.Context, key string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	for attempt := 0; ; attempt++ {
		again, err := w.post(ctx, key, body)
		if err == nil || !again || attempt == len(w.pauses) {
			return err
		}
		select {
		case <-time.After(w.pauses[attempt]):
		case <-ctx.Done():
			return err
		}
	}
}

// Alert posts an alert; it has the form of Monitor.Alert.
func (w *Webhook) Alert(ctx context.Context, a Alert) error { return w.Post(ctx, "", a) }

// post sends once. again tells whether another attempt may do better.
func (w *Webhook) post(ctx context.Context, key string, body []byte) (again bool, err error) {
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
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	again = resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500
	return again, fmt.Errorf("webhook: answered %s", resp.Status)
}
