package xxljob_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seckill/handler/xxljob"
	"seckill/service/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "secret"

// admin is an administration server that records all calls.
type admin struct {
	*httptest.Server
	t *testing.T

	called chan struct{} // signals a new call

	mu    sync.Mutex
	calls []call
	code  int
}

type call struct {
	action string
	body   string
	code   int // of the answer
}

func newAdmin(t *testing.T) *admin {
	a := &admin{t: t, code: 200, called: make(chan struct{}, 1)}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	if r.Header.Get("XXL-JOB-ACCESS-TOKEN") != token || r.Method != http.MethodPost {
		a.t.Errorf("%s %s without the token", r.Method, r.URL.Path)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call{r.URL.Path, body.String(), a.code})
	select {
	case a.called <- struct{}{}:
	default:
	}
	fmt.Fprintf(w, `{"code":%d,"msg":null}`, a.code)
}

func (a *admin) answer(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code = code
}

// got returns the bodies of the accepted calls of an action.
func (a *admin) got(action string) []string { return a.answered(action, 200) }

func (a *admin) answered(action string, code int) (bodies []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if c.action == action && c.code == code {
			bodies = append(bodies, c.body)
		}
	}
	return bodies
}

// await waits until a condition on the calls holds.
func (a *admin) await(what string, condition func() bool) {
	a.t.Helper()
	timeout := time.After(20 * time.Second)
	for !condition() {
		select {
		case <-a.called:
		case <-timeout:
			a.t.Fatalf("no %s", what)
		}
	}
}

// result waits for the callback of a run.
func (a *admin) result(logID int64) (code int, msg string) {
	a.t.Helper()
	a.await(fmt.Sprint("result of run ", logID), func() bool {
		for _, body := range a.got("/admin/api/callback") {
			var results []struct {
				LogID      int64  `json:"logId"`
				LogDateTim int64  `json:"logDateTim"`
				HandleCode int    `json:"handleCode"`
				HandleMsg  string `json:"handleMsg"`
			}
			if err := json.Unmarshal([]byte(body), &results); err != nil {
				a.t.Fatal(err)
			}
			for _, r := range results {
				if r.LogID == logID {
					if r.LogDateTim != 1234 {
						a.t.Errorf("the result has time %d", r.LogDateTim)
					}
					code, msg = r.HandleCode, r.HandleMsg
					return true
				}
			}
		}
		return false
	})
	return code, msg
}

// shop starts an executor with the jobs "quick", "fails" and "long"; the last one runs until it is cancelled.
func shop(t *testing.T, a *admin) (x *xxljob.Executor, began chan struct{}, stop func()) {
	t.Helper()
	began = make(chan struct{}, 10)
	x, err := xxljob.New(xxljob.Config{
		Admins: []string{"http://127.0.0.1:1/down", a.URL + "/admin/"}, AppName: "seckill", Address: "http://here:1/xxl", Token: token, Log: slog.New(slog.DiscardHandler),
		RegisterEvery: 20 * time.Millisecond,
		Jobs: []outbox.Job{
			{Name: "quick", Run: func(context.Context) (string, error) { return "3 done", nil }},
			{Name: "fails", Run: func(context.Context) (string, error) { return "1 done", errors.New("no database") }},
			{Name: "long", Run: func(ctx context.Context) (string, error) {
				began <- struct{}{}
				<-ctx.Done()
				return "", ctx.Err()
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { x.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	a.await("registration", func() bool { return len(a.got("/admin/api/registry")) > 0 })
	return x, began, stop
}

func ask(t *testing.T, x http.Handler, path, body string) map[string]any {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/xxl/"+path, strings.NewReader(body))
	r.Header.Set("XXL-JOB-ACCESS-TOKEN", token)
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s answered %q: %v", path, w.Body, err)
	}
	return answer
}

func trigger(job int, handler string, logID int64, strategy string) string {
	return fmt.Sprintf(`{"jobId":%d,"executorHandler":%q,"executorParams":"","executorBlockStrategy":%q,"executorTimeout":0,
		"logId":%d,"logDateTime":1234,"glueType":"BEAN","glueSource":"","glueUpdatetime":0,"broadcastIndex":0,"broadcastTotal":1}`, job, handler, strategy, logID)
}

func TestExecutor_Registration(t *testing.T) {
	a := newAdmin(t)
	_, _, stop := shop(t, a)
	a.await("repeated registration", func() bool { return len(a.got("/admin/api/registry")) >= 3 })
	want := `{"registryGroup":"EXECUTOR","registryKey":"seckill","registryValue":"http://here:1/xxl"}`
	if got := a.got("/admin/api/registry")[0]; got != want {
		t.Errorf("registered %s, want %s", got, want)
	}
	stop()
	if got := a.got("/admin/api/registryRemove"); len(got) != 1 || got[0] != want {
		t.Errorf("removed %v", got)
	}
}

func TestExecutor_ResultsWaitForServer(t *testing.T) {
	a := newAdmin(t)
	x, _, _ := shop(t, a)
	a.answer(500)
	ask(t, x, "run", trigger(1, "quick", 1, ""))
	a.await("refused callback", func() bool { return len(a.answered("/admin/api/callback", 500)) > 0 })
	a.answer(200)
	if code, _ := a.result(1); code != 200 {
		t.Errorf("code %d", code)
	}
}

func TestExecutor_Refusals(t *testing.T) {
	x, _, _ := shop(t, newAdmin(t))
	for _, tt := range []struct {
		method, path, token, body string
		want                      int
	}{
		{http.MethodGet, "/beat", token, "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/beat", "", "", http.StatusUnauthorized},
		{http.MethodPost, "/run", "secret2", trigger(1, "quick", 1, ""), http.StatusUnauthorized},
		{http.MethodPost, "/nothing", token, "{}", http.StatusNotFound},
		{http.MethodPost, "/run", token, "no json", http.StatusBadRequest},
		{http.MethodPost, "/run", token, `{"jobId":1,"executorParams":"` + strings.Repeat("x", 1<<20) + `"}`, http.StatusBadRequest},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
		r.Header.Set("XXL-JOB-ACCESS-TOKEN", tt.token)
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s %s %q: %d, want %d", tt.method, tt.path, tt.token, w.Code, tt.want)
		}
	}
	if _, err := xxljob.New(xxljob.Config{Admins: []string{"a"}, AppName: "b", Address: "c", Log: slog.New(slog.DiscardHandler), Jobs: []outbox.Job{{}}}); err == nil {
		t.Error("an executor without a token")
	}
}

func FuzzServe(f *testing.F) {
	f.Add("run", trigger(1, "quick", 1, "COVER_EARLY"))
	f.Add("log", `{"logId":1,"fromLineNum":-5}`)
	f.Add("kill", `null`)
	x, err := xxljob.New(xxljob.Config{Admins: []string{"a"}, AppName: "b", Address: "c", Token: token, Log: slog.New(slog.DiscardHandler), Jobs: []outbox.Job{{Name: "quick"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path = "/" + path
		r.Header.Set("XXL-JOB-ACCESS-TOKEN", token)
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q answered %q", path, body, w.Body)
		}
	})
}
