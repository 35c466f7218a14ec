//go:build unix

package board

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// What an update costs that goes to 200 viewers over real connections, the viewers' own reading included: as processor
// time, so that it can be told on a machine that does something else too, and as the share of two cores that twenty of
// them a second take.
func BenchmarkUpdateTo200Viewers(b *testing.B) {
	const viewers = 200
	board := newBoard(&fakeShop{}, func(c *Config) { c.WriteTimeout = time.Minute })
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = board.Stream(w, r) }))
	server.Start()
	defer server.Close()
	defer board.Close()
	var got atomic.Int64
	for range viewers {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			b.Fatal(err)
		}
		go readFrames(conn, &got)
	}
	for got.Load() < viewers { // the snapshots
		time.Sleep(time.Millisecond)
	}
	before, updates := processorTime(b), int64(0)
	for b.Loop() {
		metricsOf(board).answered("placed", 3*time.Millisecond)
		metricsOf(board).set("seckill_commit_waiting_orders", float64(updates))
		board.update()
		for updates++; got.Load() < (updates+1)*viewers; {
			time.Sleep(100 * time.Microsecond)
		}
	}
	each := (processorTime(b) - before) / time.Duration(updates)
	b.ReportMetric(float64(each.Microseconds())/viewers, "cpu-µs/viewer")
	b.ReportMetric(100*20*each.Seconds()/2, "%-of-2-cores-at-20/s")
}

func readFrames(r io.Reader, got *atomic.Int64) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) == 1 { // the empty line after a frame; those of HTTP's chunks have two bytes
			got.Add(1)
		}
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
