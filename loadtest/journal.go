package loadtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Op is what a request asks for.
type Op string

// The requests that are recorded.
const (
	OpPlace  Op = "place"
	OpPay    Op = "pay"
	OpCancel Op = "cancel"
	OpLook   Op = "look" // reads an order
	OpList   Op = "list" // found an order in its buyer's list, to settle a request that had no key
)

// Entry is one request and its answer, a line of a journal. A request that is sent several times has an entry for each.
type Entry struct {
	At      time.Time // when it was sent
	Took    time.Duration
	Op      Op
	User    int64
	Voucher string
	Key     string // its Idempotency-Key, or the shop's name for a request that had none; "" if neither is known
	Outcome Outcome
	Status  int    // 0 if there was no answer
	Order   string // the order that was placed, or stands in the way, or was acted upon
	Error   string // why there was no answer
}

// wireEntry is how an entry stands in its line.
type wireEntry struct {
	At      time.Time `json:"at"`
	TookUS  int64     `json:"took_us"`
	Op      Op        `json:"op"`
	User    int64     `json:"user,string"`
	Voucher string    `json:"voucher,omitempty"`
	Key     string    `json:"key,omitempty"`
	Outcome Outcome   `json:"outcome"`
	Status  int       `json:"status"`
	Order   string    `json:"order,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Journal writes entries down, one JSON object a line. It is safe for use by many goroutines; an entry costs them the
// time to encode it, and rarely that of a write.
type Journal struct {
	mu  sync.Mutex
	out *bufio.Writer
	err error
}

// NewJournal returns a journal that writes to w, which stays the caller's. Flush it at the end.
func NewJournal(w io.Writer) *Journal { return &Journal{out: bufio.NewWriterSize(w, 1<<20)} }

// Write adds an entry. An error of the writer is returned by Flush.
func (j *Journal) Write(e *Entry) {
	line, err := json.Marshal(wireEntry{
		At: e.At.UTC(), TookUS: e.Took.Microseconds(), Op: e.Op, User: e.User, Voucher: e.Voucher, Key: e.Key,
		Outcome: e.Outcome, Status: e.Status, Order: e.Order, Error: e.Error,
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return
	}
	if err == nil {
		_, err = j.out.Write(append(line, '\n'))
	}
	j.err = err
}

// Flush writes out what is buffered, and returns the first error of the journal.
func (j *Journal) Flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = j.out.Flush()
	}
	if j.err != nil {
		return fmt.Errorf("journal: %w", j.err)
	}
	return nil
}

// maxLine bounds a line that is read: an entry has a few hundred bytes.
const maxLine = 64 << 10

// ReadJournal reads entries and hands each to fn, which must not keep it. It ends at the first error. A last line that
// was cut off, as by a crash of the generator, is an error too: what it said is not known.
func ReadJournal(r io.Reader, fn func(*Entry) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		entry, err := parseEntry(lines.Bytes())
		if err == nil {
			err = fn(entry)
		}
		if err != nil {
			return fmt.Errorf("journal line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

func parseEntry(line []byte) (*Entry, error) {
	var w wireEntry
	if err := json.Unmarshal(line, &w); err != nil {
		return nil, err
	}
	if w.Op == "" || w.Outcome == "" || w.User == 0 || w.At.IsZero() {
		return nil, fmt.Errorf("not an entry: %.100s", line)
	}
	return &Entry{
		At: w.At, Took: time.Duration(w.TookUS) * time.Microsecond, Op: w.Op, User: w.User, Voucher: w.Voucher, Key: w.Key,
		Outcome: w.Outcome, Status: w.Status, Order: w.Order, Error: w.Error,
	}, nil
}
