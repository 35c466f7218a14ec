package loadtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Op is the kind of a request.
type Op string

// The kinds of requests that are recorded.
const (
	OpPlace  Op = "place"
	OpPay    Op = "pay"
	OpCancel Op = "cancel"
	OpRead   Op = "read"
	OpList   Op = "list" // lists a buyer's orders, to settle a request without a key
)

// Entry is a request and its answer, and a line of a journal. A request that is sent several times has an entry for each.
type Entry struct {
	At      time.Time     `json:"at"` // when it was sent
	Took    time.Duration `json:"took_ns"`
	Op      Op            `json:"op"`
	User    int64         `json:"user,string"`
	Voucher string        `json:"voucher,omitempty"`
	Key     string        `json:"key,omitempty"` // its Idempotency-Key, or the shop's id for a request without one
	Outcome Outcome       `json:"outcome"`
	Status  int           `json:"status"`          // 0 if there was no answer
	Order   string        `json:"order,omitempty"` // the order that was placed, that prevents another one, or that was changed
	Error   string        `json:"error,omitempty"` // why there was no answer
}

// Journal writes entries as JSON, one a line. It is safe for concurrent use, and buffers its writes.
type Journal struct {
	mu  sync.Mutex
	out *bufio.Writer
	err error
}

// NewJournal returns a journal that writes to w. Flush it at the end.
func NewJournal(w io.Writer) *Journal { return &Journal{out: bufio.NewWriterSize(w, 1<<20)} }

// Write adds an entry. An error of the writer is returned by Flush.
func (j *Journal) Write(e *Entry) {
	line, err := json.Marshal(e)
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

// Flush writes what is buffered, and returns the first error of the journal.
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

// maxLine is the longest line that is read. An entry has a few hundred bytes.
const maxLine = 64 << 10

// ReadJournal calls fn for each entry; fn must not keep it. It ends at the first error. An incomplete last line, as after a
// crash of the load generator, is an error too.
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
	e := new(Entry)
	if err := json.Unmarshal(line, e); err != nil {
		return nil, err
	}
	if e.Op == "" || e.Outcome == "" || e.User == 0 || e.At.IsZero() {
		return nil, fmt.Errorf("not an entry: %.100s", line)
	}
	return e, nil
}
