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
	a := &admin{t: t, code: 200}
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

// result waits for the callback of a run.
func (a *admin) result(logID int64) (code int, msg string) {
	a.t.Helper()
	for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(5 * time.Millisecond) {
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
						a.t.Errorf("the result carries time %d", r.LogDateTim)
					}
					return r.HandleCode, r.HandleMsg
				}
			}
		}
	}
	a.t.Fatalf("run %d has no result", logID)
	return 0, ""
}

// shop starts an executor with the jobs "quick", "fails" and "long"; the last one runs until it is cancelled.
func shop(t *testing.T, a *admin) (x *xxljob.Executor, began chan struct{}, stop func()) {
	t.Helper()
	began = make(chan struct{}, 10)
	x, err := xxljob.New(xxljob.Config{
		Admins: []string{"http://127.0.0.1:1/down", a.URL + "/admin/"}, AppName: "seckill", Address: "http://here:1/xxl", Token: token, Log: slog.New(slog.DiscardHandler),
		Beat: 20 * time.Millisecond,
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
	for len(a.got("/admin/api/registry")) == 0 { // it runs
		time.Sleep(time.Millisecond)
	}
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
	for len(a.got("/admin/api/registry")) < 3 { // and again and again
		time.Sleep(time.Millisecond)
	}
	want := `{"registryGroup":"EXECUTOR","registryKey":"seckill","registryValue":"http://here:1/xxl"}`
	if got := a.got("/admin/api/registry")[0]; got != want {
		t.Errorf("registered %s, want %s", got, want)
	}
	stop()
	if got := a.got("/admin/api/registryRemove"); len(got) != 1 || got[0] != want {
		t.Errorf("removed %v", got)
	}
}

func TestExecutor_Run(t *testing.T) {
	a := newAdmin(t)
	x, _, _ := shop(t, a)
	for id, tt := range []struct {
		handler string
		code    int
		msg     string
	}{{"quick", 200, "3 done"}, {"fails", 500, "1 done; no database"}} {
		if answer := ask(t, x, "run", trigger(id, tt.handler, int64(id), "SERIAL_EXECUTION")); answer["code"] != 200.0 {
			t.Errorf("run: %v", answer)
		}
		if code, msg := a.result(int64(id)); code != tt.code || msg != tt.msg {
			t.Errorf("%s: %d %q, want %d %q", tt.handler, code, msg, tt.code, tt.msg)
		}
	}
	answer := ask(t, x, "log", `{"logDateTim":1234,"logId":1,"fromLineNum":2}`)
	for _, field := range []string{"content", "data"} { // of version 2 and of version 3
		part, _ := answer[field].(map[string]any)
		if part["isEnd"] != true || part["toLineNum"] != 2.0 || !strings.Contains(fmt.Sprint(part["logContent"]), "no database") {
			t.Errorf("%s: %v", field, answer)
		}
	}
	for body, why := range map[string]string{
		trigger(9, "nowhere", 9, ""):                                         "no job handler",
		strings.Replace(trigger(9, "quick", 9, ""), "BEAN", "GLUE_SHELL", 1): "glue type",
	} {
		if answer := ask(t, x, "run", body); answer["code"] != 500.0 || !strings.Contains(fmt.Sprint(answer["msg"]), why) {
			t.Errorf("%v, want a refusal for its %s", answer, why)
		}
	}
}

func TestExecutor_BlockStrategiesAndKill(t *testing.T) {
	a := newAdmin(t)
	x, began, _ := shop(t, a)
	code := func(path, body string) any { t.Helper(); return ask(t, x, path, body)["code"] }
	check := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("an idle job", code("idleBeat", `{"jobId":7}`), 200.0)
	check("a first run", code("run", trigger(7, "long", 1, "")), 200.0)
	<-began
	check("a busy job", code("idleBeat", `{"jobId":7}`), 500.0)
	check("a later trigger, discarded", code("run", trigger(7, "long", 2, "DISCARD_LATER")), 500.0)
	check("a later trigger, queued", code("run", trigger(7, "long", 3, "SERIAL_EXECUTION")), 200.0)
	check("a later trigger that covers", code("run", trigger(7, "long", 4, "COVER_EARLY")), 200.0)
	<-began // run 4
	for _, id := range []int64{1, 3} {
		if code, msg := a.result(id); code != 500 || !strings.Contains(msg, "covered") {
			t.Errorf("run %d: %d %q, want it covered", id, code, msg)
		}
	}
	check("kill", code("kill", `{"jobId":7}`), 200.0)
	if code, msg := a.result(4); code != 500 || !strings.Contains(msg, "killed") {
		t.Errorf("a killed run: %d %q", code, msg)
	}
	check("kill what does not run", code("kill", `{"jobId":8}`), 200.0)
	check("a run with a time limit", code("run", strings.Replace(trigger(6, "long", 5, ""), `Timeout":0`, `Timeout":1`, 1)), 200.0)
	<-began
	if code, msg := a.result(5); code != 500 || !strings.Contains(msg, "within 1 s") {
		t.Errorf("a run that took too long: %d %q", code, msg)
	}
}

func TestExecutor_StopCancelsAndReports(t *testing.T) {
	a := newAdmin(t)
	x, began, stop := shop(t, a)
	ask(t, x, "run", trigger(7, "long", 1, ""))
	<-began
	stop()
	if code, _ := a.result(1); code != 500 {
		t.Errorf("the run that was broken off has code %d", code)
	}
	for _, path := range []string{"beat", "run"} {
		if answer := ask(t, x, path, trigger(7, "quick", 2, "")); answer["code"] != 500.0 {
			t.Errorf("%s after the end: %v", path, answer)
		}
	}
}

func TestExecutor_ResultsWaitForServer(t *testing.T) {
	a := newAdmin(t)
	x, _, _ := shop(t, a)
	a.answer(500)
	ask(t, x, "run", trigger(1, "quick", 1, ""))
	for len(a.answered("/admin/api/callback", 500)) == 0 {
		time.Sleep(time.Millisecond)
	}
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
