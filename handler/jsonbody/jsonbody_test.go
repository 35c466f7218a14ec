package jsonbody

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"seckill/service/idgen"
)

// document has an optional member of each type, request a required one.
type document struct {
	ID     *idgen.ID  `json:"id"`
	Text   *string    `json:"text"`
	Number *int64     `json:"number"`
	Int    *int       `json:"int"`
	Time   *time.Time `json:"time"`
}

type request struct {
	ID     idgen.ID  `json:"id"`
	Text   string    `json:"text"`
	Number int64     `json:"number"`
	Int    int       `json:"int"`
	Time   time.Time `json:"time"`
}

func decode(text string) (d document, err error) {
	err = Decode([]byte(text), &d)
	return d, err
}

func TestDecode_Values(t *testing.T) {
	noon := time.Date(2026, 11, 11, 12, 0, 0, 500e6, time.UTC)
	for input, want := range map[string]document{
		`{}`:                           {},
		"\r\n\t { \n } \t":             {},
		`{"id":"9223372036854775807"}`: {ID: new(idgen.ID(9223372036854775807))},
		`{"text":"a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00\u0000😀"}`: {Text: new("a\"\\/\b\f\n\r\téé😀\x00😀")},
		`{"te\u0078t":"x"}`:                      {Text: new("x")},
		`{"text":""}`:                            {Text: new("")},
		`{"number":-9223372036854775808}`:        {Number: new(int64(-9223372036854775808))},
		`{"number":-0,"text":"}","int":7}`:       {Number: new(int64(0)), Text: new("}"), Int: new(7)},
		`{"time":"2026-11-11T12:00:00.5Z"}`:      {Time: &noon},
		`{"time":"2026-11-11T20:00:00.5+08:00"}`: {Time: &noon},
	} {
		got, err := decode(input)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v", input, got, err)
		}
	}
}

func TestDecode_RequiredMembers(t *testing.T) {
	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	fields := map[string]any{"id": "7", "text": "", "number": 0, "int": 0, "time": "2026-11-11T14:00:00+02:00"}
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var got request
	if err := Decode(body, &got); err != nil || got != (request{ID: 7, Time: noon}) {
		t.Errorf("%+v %v", got, err)
	}
	for missing := range fields {
		rest := maps.Clone(fields)
		delete(rest, missing)
		body, err := json.Marshal(rest)
		if err != nil {
			t.Fatal(err)
		}
		err = Decode(body, new(request))
		if value, ok := err.(*ValueError); !ok || value.Error() != missing+" is required" {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func TestDecode_SyntaxErrors(t *testing.T) {
	for input, field := range map[string]string{
		``: "", ` `: "", `null`: "", `"id"`: "", `[]`: "", `7`: "", `{`: "", `}`: "", `{"`: "", `{"id`: "", `{"id"`: "", `{"id":`: "",
		`{"id":"7"`: "", `{"id":"7",`: "", `{"id":"7",}`: "", `{,}`: "", `{"id" "7"}`: "", `{"id":"7" "text":"x"}`: "", `{id:"7"}`: "",
		`{'id':"7"}`: "", `{"id":"7"}{}`: "", `{"id":"7"}]`: "", `{"id":"7"} x`: "", `{"id":"7"}` + "\x00": "", "\ufeff{}": "", "\v{}": "",
		`{"id":"7`: "", `{"id":7x}`: "", `{"number":}`: "", `{"number":01}`: "", `{"number":-}`: "", `{"number":+1}`: "", `{"number":.5}`: "",
		`{"number":1.}`: "", `{"number":1e}`: "", `{"number":0x10}`: "", `{"number":--1}`: "", `{"number":1-1}`: "", `{"text":nul}`: "",
		`{"text":[}`: "", `{"text":{"a":[1,2}}`: "",
		`{"text":"\x"}`: "", `{"text":"\u12"}`: "", `{"text":"\u12g4"}`: "", `{"text":"\ud800"}`: "", `{"text":"\udc00"}`: "",
		`{"text":"\ud800\u0041"}`: "", `{"text":"\ud800\ud800"}`: "", `{"text":"\`: "", `{"text":"\u`: "", `{"text":"a\`: "",
		"{\"text\":\"\n\"}": "", "{\"text\":\"\\n\t\"}": "", "{\"text\":\"\xff\"}": "", "{\"text\":\"\\n\xc0\xaf\"}": "", "{\"\xff\":1}": "",
		"{\"text\":\"\xed\xa0\x80\"}": "",
		`{"ID":"7"}`:                  "ID",
		`{"Id":"7"}`:                  "Id",
		`{"":1}`:                      "",
		`{"id ":"7"}`:                 "id ",
		`{"ıd":"7"}`:                  "ıd",
		`{"id":"7","id":"7"}`:         "id",
		`{"id":"7","\u0069d":"7"}`:    "id",
		`{"id":"7","other":{"a":1}}`:  "other",
	} {
		_, err := decode(input)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Field != field || syntax.Message == "" {
			t.Errorf("%q: %#v", input, err)
		}
	}
}

func TestDecode_ValueErrors(t *testing.T) {
	for input, field := range map[string]string{
		`{"id":7}`: "id", `{"id":null}`: "id", `{"id":["7"]}`: "id", `{"id":{}}`: "id", `{"id":true}`: "id", `{"id":""}`: "id",
		`{"id":"0"}`: "id", `{"id":"-7"}`: "id", `{"id":" 7"}`: "id", `{"id":"07"}`: "id", `{"id":"9223372036854775808"}`: "id",
		`{"text":7}`: "text", `{"text":null}`: "text", `{"text":false}`: "text",
		`{"number":"7"}`: "number", `{"number":null}`: "number", `{"number":7.0}`: "number", `{"number":7e0}`: "number", `{"number":[7]}`: "number",
		`{"number":9223372036854775808}`: "number", `{"number":-9223372036854775809}`: "number",
		`{"number":1e3}`: "number", `{"int":1.5}`: "int", `{"int":99999999999999999999}`: "int",
		`{"time":7}`: "time", `{"time":""}`: "time", `{"time":"2026-11-11"}`: "time", `{"time":"2026-11-11T12:00:00"}`: "time",
		`{"time":"2026-02-30T12:00:00Z"}`: "time", `{"time":"2026-11-11t12:00:00z"}`: "time",
	} {
		_, err := decode(input)
		var value *ValueError
		if !errors.As(err, &value) || value.Field != field || value.Message == "" {
			t.Errorf("%q: %#v", input, err)
		}
	}
}

// A syntax error anywhere in the body comes before the value errors.
func TestDecode_SyntaxErrorFirst(t *testing.T) {
	for _, input := range []string{`{"id":7,"other":1}`, `{"id":7,"id":"7"}`, `{"id":7`} {
		if _, ok := Decode([]byte(input), new(request)).(*SyntaxError); !ok {
			t.Errorf("%s is not a syntax error", input)
		}
	}
}

// Errors repeat only a bounded part of the body.
func TestDecode_ErrorsAreShort(t *testing.T) {
	_, err := decode(`{"` + strings.Repeat("é\\n", 5000) + `":1}`)
	if err == nil || len(err.Error()) > 300 || !utf8.ValidString(err.Error()) {
		t.Errorf("%d bytes: %.100v", len(err.Error()), err)
	}
}

// Decode accepts a subset of what encoding/json accepts, with the same result. A body with a value error is valid JSON.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"7","text":"\ud83d\ude00\n","number":-12,"time":"2026-11-11T12:00:00.5Z"}`,
		`{"text":"","number":-5,"int":7,"time":"2026-11-11T12:00:00+08:00"}`,
		`{"number":1e5}`, `{"text":[[[[]]]]}`, `{"ID":"7"}`, `{"id":"7","id":"8"}`, `{}{}`, "{\"text\":\"\xff\"}", `{"text":"\u00`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decode(string(body))
		switch err.(type) {
		case nil:
			var want document
			if err := json.Unmarshal(body, &want); err != nil {
				t.Fatalf("accepted, but %v", err)
			}
			if want.Time != nil {
				*want.Time = want.Time.UTC()
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			if !utf8.Valid(body) {
				t.Fatal("accepted what is not UTF-8")
			}
		case *ValueError:
			if !json.Valid(body) {
				t.Fatalf("no JSON, but %v", err)
			}
		case *SyntaxError:
		default:
			t.Fatalf("%T", err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"voucher_id":"7340239048704001"}`)
	b.ReportAllocs()
	for b.Loop() {
		var order struct {
			VoucherID idgen.ID `json:"voucher_id"`
		}
		if err := Decode(body, &order); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleDecode() {
	var body struct {
		Units int64 `json:"units"`
	}
	fmt.Println(Decode([]byte(`{"units":5}`), &body), body.Units)
	fmt.Println(Decode([]byte(`{"Units":5}`), &body))
	fmt.Println(Decode([]byte(`{"units":"5"}`), &body))
	// Output:
	// <nil> 5
	// unknown field "Units"
	// units must be a whole number
}
