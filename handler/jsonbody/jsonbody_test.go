package jsonbody

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"seckill/service/idgen"
)

// document has a field of each type.
type document struct {
	ID       idgen.ID   `json:"id"`
	Text     string     `json:"text"`
	Number   int64      `json:"number"`
	Time     time.Time  `json:"time"`
	MaybeStr *string    `json:"maybe_str"`
	MaybeI64 *int64     `json:"maybe_i64"`
	MaybeInt *int       `json:"maybe_int"`
	MaybeT   *time.Time `json:"maybe_time"`
}

func decode(text string) (d document, err error) {
	err = Decode([]byte(text),
		Field{Name: "id", Into: &d.ID}, Field{Name: "text", Into: &d.Text},
		Field{Name: "number", Into: &d.Number}, Field{Name: "time", Into: &d.Time},
		Field{Name: "maybe_str", Into: &d.MaybeStr}, Field{Name: "maybe_i64", Into: &d.MaybeI64},
		Field{Name: "maybe_int", Into: &d.MaybeInt}, Field{Name: "maybe_time", Into: &d.MaybeT},
	)
	return d, err
}

func TestDecode(t *testing.T) {
	text, number, small := "", int64(-5), 7
	noon := time.Date(2026, 11, 11, 12, 0, 0, 500e6, time.UTC)
	for input, want := range map[string]document{
		`{}`:                           {},
		"\r\n\t { \n } \t":             {},
		`{"id":"9223372036854775807"}`: {ID: 9223372036854775807},
		`{"text":"a\"\\\/\b\f\n\r\té\u00e9\ud83d\ude00\u0000😀"}`: {Text: "a\"\\/\b\f\n\r\téé😀\x00😀"},
		`{"te\u0078t":"x"}`:                      {Text: "x"},
		`{"number":-9223372036854775808}`:        {Number: -9223372036854775808},
		`{"number":-0,"text":"}"}`:               {Text: "}"},
		`{"time":"2026-11-11T12:00:00.5Z"}`:      {Time: noon},
		`{"time":"2026-11-11T20:00:00.5+08:00"}`: {Time: noon},
		`{"maybe_str":"","maybe_i64":-5,"maybe_int":7,"maybe_time":"2026-11-11T12:00:00.5Z"}`: {MaybeStr: &text, MaybeI64: &number, MaybeInt: &small, MaybeT: &noon},
	} {
		got, err := decode(input)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v", input, got, err)
		}
	}
}

func TestSyntax(t *testing.T) {
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

func TestValues(t *testing.T) {
	for input, field := range map[string]string{
		`{"id":7}`: "id", `{"id":null}`: "id", `{"id":["7"]}`: "id", `{"id":{}}`: "id", `{"id":true}`: "id", `{"id":""}`: "id",
		`{"id":"0"}`: "id", `{"id":"-7"}`: "id", `{"id":" 7"}`: "id", `{"id":"07"}`: "id", `{"id":"9223372036854775808"}`: "id",
		`{"text":7}`: "text", `{"text":null}`: "text", `{"text":false}`: "text",
		`{"number":"7"}`: "number", `{"number":null}`: "number", `{"number":7.0}`: "number", `{"number":7e0}`: "number", `{"number":[7]}`: "number",
		`{"number":9223372036854775808}`: "number", `{"number":-9223372036854775809}`: "number",
		`{"maybe_i64":1e3}`: "maybe_i64", `{"maybe_int":1.5}`: "maybe_int", `{"maybe_int":99999999999999999999}`: "maybe_int",
		`{"time":7}`: "time", `{"time":""}`: "time", `{"time":"2026-11-11"}`: "time", `{"time":"2026-11-11T12:00:00"}`: "time",
		`{"time":"2026-02-30T12:00:00Z"}`: "time", `{"time":"2026-11-11t12:00:00z"}`: "time", `{"maybe_time":"soon"}`: "maybe_time",
		`{"maybe_str":null}`: "maybe_str",
	} {
		_, err := decode(input)
		var value *ValueError
		if !errors.As(err, &value) || value.Field != field || value.Message == "" {
			t.Errorf("%q: %#v", input, err)
		}
	}
	var id idgen.ID
	err := Decode([]byte(`{}`), Field{Name: "id", Into: &id, Required: true})
	if value, ok := err.(*ValueError); !ok || value.Error() != "id is required" {
		t.Errorf("%v", err)
	}
}

// A stranger's text comes back in errors, but not all of it.
func TestErrorsAreShort(t *testing.T) {
	_, err := decode(`{"` + strings.Repeat("é\\n", 5000) + `":1}`)
	if err == nil || len(err.Error()) > 300 || !utf8.ValidString(err.Error()) {
		t.Errorf("%d bytes: %.100v", len(err.Error()), err)
	}
}

// Nothing of the buffer is kept: it is used for the next request.
func TestNothingRefersToTheBody(t *testing.T) {
	body := []byte(`{"text":"abc","maybe_str":"def"}`)
	var text string
	var maybe *string
	if err := Decode(body, Field{Name: "text", Into: &text}, Field{Name: "maybe_str", Into: &maybe}); err != nil {
		t.Fatal(err)
	}
	clear(body)
	if text != "abc" || *maybe != "def" {
		t.Errorf("%q %q", text, *maybe)
	}
}

func TestUnsupportedTypePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = Decode([]byte(`{"x":1}`), Field{Name: "x", Into: new(float64)})
}

func TestDecodingAnOrderAllocatesNothing(t *testing.T) {
	body := []byte(`{"voucher_id":"7340239048704001"}`)
	if n := testing.AllocsPerRun(100, func() {
		var id idgen.ID
		if err := Decode(body, Field{Name: "voucher_id", Into: &id, Required: true}); err != nil || id != 7340239048704001 {
			t.Fatal(id, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What we accept, encoding/json accepts with the same meaning; and what we refuse for its values only is JSON.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"7","text":"\ud83d\ude00\n","number":-12,"time":"2026-11-11T12:00:00.5Z"}`,
		`{"maybe_str":"","maybe_i64":-5,"maybe_int":7,"maybe_time":"2026-11-11T12:00:00+08:00"}`,
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
			for _, moment := range []*time.Time{&want.Time, want.MaybeT} {
				if moment != nil {
					*moment = moment.UTC()
				}
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
	b.Run("jsonbody", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var id idgen.ID
			if err := Decode(body, Field{Name: "voucher_id", Into: &id, Required: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var order struct {
				VoucherID idgen.ID `json:"voucher_id"`
			}
			if err := json.Unmarshal(body, &order); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func ExampleDecode() {
	var units int64
	fmt.Println(Decode([]byte(`{"units":5}`), Field{Name: "units", Into: &units}), units)
	fmt.Println(Decode([]byte(`{"Units":5}`), Field{Name: "units", Into: &units}))
	// Output:
	// <nil> 5
	// unknown field "Units"
}
