package xxljob

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"path"
)

// ServeHTTP answers the administration server: beat, idleBeat, run, kill and log, each a POST to a path that ends with
// its name. As the protocol wants it, refusals are answered 200 with a code of their own; only a wrong token or a body
// that is none are refused by HTTP too.
func (x *Executor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed, reply{Code: codeFail, Msg: "only POST is supported"})
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(x.cfg.Token)) != 1 {
		answer(w, http.StatusUnauthorized, reply{Code: codeFail, Msg: "the access token is wrong"})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
	switch path.Base(r.URL.Path) {
	case "beat":
		answer(w, http.StatusOK, x.beat())
	case "idleBeat":
		serve(w, r, x.idleBeat)
	case "run":
		serve(w, r, x.run)
	case "kill":
		serve(w, r, x.kill)
	case "log":
		serve(w, r, x.log)
	default:
		answer(w, http.StatusNotFound, reply{Code: codeFail, Msg: "no such call"})
	}
}

// serve decodes the body. Fields that are not known are a later version's.
func serve[T any](w http.ResponseWriter, r *http.Request, call func(T) reply) {
	var body T
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answer(w, http.StatusBadRequest, reply{Code: codeFail, Msg: "the body cannot be read: " + err.Error()})
		return
	}
	answer(w, http.StatusOK, call(body))
}

func answer(w http.ResponseWriter, status int, body reply) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the other side may be gone
}

func (x *Executor) beat() reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil {
		return reply{Code: codeFail, Msg: errNotRunning.Error()}
	}
	return reply{Code: codeOK}
}

// idleBeat tells whether the job could run here at once.
func (x *Executor) idleBeat(job jobRef) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.queues[job.JobID] != nil {
		return reply{Code: codeFail, Msg: "the job is running or waiting"}
	}
	return reply{Code: codeOK}
}

func (x *Executor) log(q logQuery) reply {
	part := x.logs.read(q.LogID, q.FromLine)
	return reply{Code: codeOK, Content: part, Data: part}
}
