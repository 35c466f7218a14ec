package loadtest

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func sampleEntries() []Entry {
	at := time.Date(2026, 11, 11, 0, 0, 0, 123456789, time.UTC)
	return []Entry{
		{At: at, Took: 1500 * time.Microsecond, Op: OpPlace, User: 42, Voucher: "7", Key: "k-1", Outcome: Placed, Status: 201, Order: "9007199254740993"},
		{At: at, Took: time.Second, Op: OpPlace, User: 42, Voucher: "7", Outcome: Timeout, Error: "timeout \"quoted\"\nsecond line"},
		{At: at, Op: OpPay, User: 9223372036854775807, Voucher: "7", Order: "8", Outcome: Done, Status: 200},
		{At: at, Op: OpList, User: 1, Voucher: "7", Outcome: Done, Status: 200},
	}
}

func TestJournal_RoundTrip(t *testing.T) {
	var file bytes.Buffer
	j := NewJournal(&file)
	want := sampleEntries()
	for i := range want {
		j.Write(&want[i])
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(file.String(), "\n"); n != len(want) {
		t.Errorf("%d lines for %d entries", n, len(want))
	}
	var got []Entry
	if err := ReadJournal(&file, func(e *Entry) error { got = append(got, *e); return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestJournal_ManyWriters(t *testing.T) {
	var file bytes.Buffer
	j := NewJournal(&file)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 2000 { // more than the buffer holds
				j.Write(&sampleEntries()[1])
			}
		})
	}
	writers.Wait()
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := ReadJournal(&file, func(*Entry) error { n++; return nil }); err != nil || n != 16000 {
		t.Errorf("%d entries, %v", n, err)
	}
}

func TestJournal_DamagedIsRefused(t *testing.T) {
	var file bytes.Buffer
	j := NewJournal(&file)
	j.Write(&sampleEntries()[0])
	j.Write(&sampleEntries()[0])
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cut off":    file.String()[:file.Len()-20],
		"not JSON":   file.String() + "nonsense\n",
		"no outcome": file.String() + `{"at":"2026-11-11T00:00:00Z","op":"place","user":"1"}` + "\n",
		"too long":   file.String() + strings.Repeat("x", 2*maxLine) + "\n",
	} {
		if err := ReadJournal(strings.NewReader(text), func(*Entry) error { return nil }); err == nil {
			t.Errorf("%s: was read without an error", name)
		}
	}
	stop := errors.New("enough")
	if err := ReadJournal(&file, func(*Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the reader's error came back as %v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestJournal_WriteError(t *testing.T) {
	j := NewJournal(fullDisk{})
	j.Write(&sampleEntries()[0])
	if err := j.Flush(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Flush: %v", err)
	}
}

func FuzzReadJournal(f *testing.F) {
	var file bytes.Buffer
	j := NewJournal(&file)
	for _, e := range sampleEntries() {
		j.Write(&e)
	}
	_ = j.Flush()
	f.Add(file.Bytes())
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Whatever is read can be written, and is then read as the same.
		_ = ReadJournal(bytes.NewReader(data), func(e *Entry) error {
			first := *e
			var again bytes.Buffer
			j := NewJournal(&again)
			j.Write(&first)
			if err := j.Flush(); err != nil {
				return nil // a year that RFC 3339 does not have
			}
			err := ReadJournal(&again, func(e *Entry) error {
				second := *e
				if !first.At.Equal(second.At) {
					t.Errorf("at %v, then %v", first.At, second.At)
				}
				first.At, second.At = time.Time{}, time.Time{}
				if first != second {
					t.Errorf("%+v, then %+v", first, second)
				}
				return nil
			})
			if err != nil && again.Len() > 0 {
				t.Errorf("%q cannot be read again: %v", again.String(), err)
			}
			return nil
		})
	})
}

func BenchmarkJournal(b *testing.B) {
	j := NewJournal(io.Discard)
	e := sampleEntries()[0]
	b.ReportAllocs()
	for b.Loop() {
		j.Write(&e)
	}
}
