package xxljob_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"seckill/handler/xxljob"
	"seckill/service/outbox"
)

func TestRefusals(t *testing.T) {
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
	if _, err := xxljob.New(xxljob.Config{Admins: []string{"a"}, AppName: "b", Address: "c", Jobs: []outbox.Job{{}}}); err == nil {
		t.Error("an executor without a token")
	}
}

func FuzzServe(f *testing.F) {
	f.Add("run", trigger(1, "quick", 1, "COVER_EARLY"))
	f.Add("log", `{"logId":1,"fromLineNum":-5}`)
	f.Add("kill", `null`)
	x, err := xxljob.New(xxljob.Config{Admins: []string{"a"}, AppName: "b", Address: "c", Token: token, Jobs: []outbox.Job{{Name: "quick"}}})
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
