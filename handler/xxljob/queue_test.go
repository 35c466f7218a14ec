package xxljob_test

import (
	"fmt"
	"strings"
	"testing"
)

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
		if code, msg := a.result(id); code != 500 || !strings.Contains(msg, "replaced") {
			t.Errorf("run %d: %d %q, want it replaced", id, code, msg)
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
