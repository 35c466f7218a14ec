package xxljob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// The codes of XXL-Job.
const (
	codeOK   = 200
	codeFail = 500
)

// tokenHeader carries the access token in both directions.
const tokenHeader = "XXL-JOB-ACCESS-TOKEN"

// bodyMax bounds what is read from the other side.
const bodyMax = 1 << 20

// reply is the answer to every call. Version 2 reads Content, version 3 Data.
type reply struct {
	Code    int    `json:"code"`
	Msg     string `json:"msg,omitempty"`
	Content any    `json:"content,omitempty"`
	Data    any    `json:"data,omitempty"`
}

// trigger asks to run a job.
type trigger struct {
	JobID         int    `json:"jobId"`
	Handler       string `json:"executorHandler"`
	Params        string `json:"executorParams"`
	BlockStrategy string `json:"executorBlockStrategy"`
	Timeout       int    `json:"executorTimeout"` // seconds; 0 is none
	LogID         int64  `json:"logId"`
	LogTime       int64  `json:"logDateTime"`
	GlueType      string `json:"glueType"`
}

// What to do with a trigger whose job still runs. Anything else means to queue it.
const (
	discardLater = "DISCARD_LATER"
	coverEarly   = "COVER_EARLY"
)

// jobRef is the body of idleBeat and kill.
type jobRef struct {
	JobID int `json:"jobId"`
}

// logQuery asks for lines of a log, from 1.
type logQuery struct {
	LogID    int64 `json:"logId"`
	FromLine int   `json:"fromLineNum"`
}

// logPart is the answer to that.
type logPart struct {
	FromLine int    `json:"fromLineNum"`
	ToLine   int    `json:"toLineNum"`
	Content  string `json:"logContent"`
	IsEnd    bool   `json:"isEnd"`
}

// callback tells the result of a run. The missing e is the protocol's.
type callback struct {
	LogID   int64  `json:"logId"`
	LogTime int64  `json:"logDateTim"`
	Code    int    `json:"handleCode"`
	Msg     string `json:"handleMsg"`
}

// post calls the administration servers in turn until one takes it.
func (x *Executor) post(ctx context.Context, action string, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var failures []error
	for _, admin := range x.cfg.Admins {
		err := x.postTo(ctx, admin+"/api/"+action, encoded)
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
	resp, err := x.cfg.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer reply
	if err := json.NewDecoder(io.LimitReader(resp.Body, bodyMax)).Decode(&answer); err != nil {
		return fmt.Errorf("%s answered %s with what is not a reply: %w", address, resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK || answer.Code != codeOK {
		return fmt.Errorf("%s answered %s, code %d: %s", address, resp.Status, answer.Code, answer.Msg)
	}
	return nil
}
