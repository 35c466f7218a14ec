package xxljob

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
)

// The codes of XXL-Job.
const (
	codeOK   = 200
	codeFail = 500
)

const (
	tokenHeader = "XXL-JOB-ACCESS-TOKEN" // in both directions
	maxBody     = 1 << 20
)

// reply is the answer to every call. Version 2 reads Content, version 3 reads Data.
type reply struct {
	Code    int    `json:"code"`
	Msg     string `json:"msg,omitempty"`
	Content any    `json:"content,omitempty"`
	Data    any    `json:"data,omitempty"`
}

var success = reply{Code: codeOK}

func failure(format string, args ...any) reply {
	return reply{Code: codeFail, Msg: fmt.Sprintf(format, args...)}
}

const notRunning = "the executor is not running"

// request has the members of all calls that an executor uses. Others are ignored.
type request struct {
	JobID         int    `json:"jobId"`
	Handler       string `json:"executorHandler"`
	Params        string `json:"executorParams"`
	BlockStrategy string `json:"executorBlockStrategy"`
	Timeout       int    `json:"executorTimeout"` // seconds; 0 is none
	GlueType      string `json:"glueType"`
	LogID         int64  `json:"logId"`
	LogTime       int64  `json:"logDateTime"`
	FromLine      int    `json:"fromLineNum"` // of a log, counted from 1
}

type logPart struct {
	FromLine int    `json:"fromLineNum"`
	ToLine   int    `json:"toLineNum"`
	Content  string `json:"logContent"`
	IsEnd    bool   `json:"isEnd"`
}

// callback is the result of a run.
type callback struct {
	LogID   int64  `json:"logId"`
	LogTime int64  `json:"logDateTim"` // spelt like this by the protocol
	Code    int    `json:"handleCode"`
	Msg     string `json:"handleMsg"`
}

// ServeHTTP answers the calls of the administration server: POST requests for beat, idleBeat, run, kill and log. By the
// protocol, most refusals have HTTP status 200 and a code in the body.
func (x *Executor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed, failure("only POST is supported"))
		return
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(x.cfg.Token)) != 1 {
		answer(w, http.StatusUnauthorized, failure("the access token is wrong"))
		return
	}
	calls := map[string]func(request) reply{"beat": x.beat, "idleBeat": x.idleBeat, "run": x.run, "kill": x.kill, "log": x.log}
	call, ok := calls[path.Base(r.URL.Path)]
	if !ok {
		answer(w, http.StatusNotFound, failure("unknown call"))
		return
	}
	var body request // beat has none
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil && err != io.EOF {
		answer(w, http.StatusBadRequest, failure("the body cannot be read: %v", err))
		return
	}
	answer(w, http.StatusOK, call(body))
}

func answer(w http.ResponseWriter, status int, body reply) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}

func (x *Executor) beat(request) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil {
		return failure(notRunning)
	}
	return success
}

// idleBeat reports whether a job could start immediately.
func (x *Executor) idleBeat(r request) reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.queues[r.JobID] != nil {
		return failure("the job is running or waiting")
	}
	return success
}

// post calls the administration servers one after another until one accepts.
func (x *Executor) post(ctx context.Context, action string, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var failures []error
	for _, admin := range x.cfg.Admins {
		err := x.postTo(ctx, strings.TrimRight(admin, "/")+"/api/"+action, encoded)
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (x *Executor) postTo(ctx context.Context, address string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json;charset=UTF-8")
	req.Header.Set(tokenHeader, x.cfg.Token)
	resp, err := x.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer reply
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&answer); err != nil {
		return fmt.Errorf("%s answered %s without a valid reply: %w", address, resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK || answer.Code != codeOK {
		return fmt.Errorf("%s answered %s, code %d: %s", address, resp.Status, answer.Code, answer.Msg)
	}
	return nil
}
