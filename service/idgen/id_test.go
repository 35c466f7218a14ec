package idgen_test

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"testing"

	"seckill/service/idgen"
)

func TestID_IsAStringInJSON(t *testing.T) {
	type order struct {
		ID   idgen.ID  `json:"id"`
		Next *idgen.ID `json:"next,omitempty"`
	}
	const big = 9007199254740993 // 2^53 + 1: a double would turn it into ...992
	text, err := json.Marshal(order{ID: big})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(text), `{"id":"9007199254740993"}`; got != want {
		t.Fatalf("Marshal = %s, want %s", got, want)
	}
	var back order
	if err := json.Unmarshal(text, &back); err != nil || back.ID != big {
		t.Fatalf("Unmarshal = %v, %v", back, err)
	}
}

func TestID_RefusesOtherSpellings(t *testing.T) {
	for _, text := range []string{
		`1`, `1.0`, `1e3`, `""`, `"0"`, `"00"`, `"01"`, `"+1"`, `"-1"`, `" 1"`, `"1 "`, `"1\n"`, `"1_000"`, `"0x10"`,
		`"１"`, `"9223372036854775808"`, `"18446744073709551617"`, `"99999999999999999999"`, `true`, `[]`, `{}`,
	} {
		id := idgen.ID(7)
		if err := json.Unmarshal([]byte(text), &id); err == nil {
			t.Errorf("Unmarshal(%s) gave %d, want an error", text, id)
		}
		if id != 7 {
			t.Errorf("Unmarshal(%s) changed the id to %d although it failed", text, id)
		}
	}
	if _, err := idgen.ParseID("01"); !errors.Is(err, idgen.ErrInvalid) {
		t.Errorf("ParseID(01) = %v, want ErrInvalid", err)
	}
}

func TestID_NotPositiveIsNotWritten(t *testing.T) {
	for _, id := range []idgen.ID{0, -1, math.MinInt64} {
		if _, err := json.Marshal(id); !errors.Is(err, idgen.ErrInvalid) {
			t.Errorf("Marshal(%d) = %v, want ErrInvalid", int64(id), err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"1", "0", "01", "-1", "9223372036854775807", "9223372036854775808", " 1", "1e3", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := idgen.ParseID(s)
		n, convErr := strconv.ParseInt(s, 10, 64)
		canonical := convErr == nil && n > 0 && strconv.FormatInt(n, 10) == s
		if canonical != (err == nil) {
			t.Fatalf("ParseID(%q) = %d, %v; canonical: %v", s, id, err, canonical)
		}
		if err == nil && (int64(id) != n || id.String() != s) {
			t.Fatalf("ParseID(%q) = %d", s, id)
		}
		var fromJSON idgen.ID
		quoted, quoteErr := json.Marshal(s)
		if quoteErr != nil {
			t.Fatal(quoteErr)
		}
		if jsonErr := json.Unmarshal(quoted, &fromJSON); (jsonErr == nil) != (err == nil) || fromJSON != id {
			t.Fatalf("JSON %s gave %d, %v; ParseID gave %d, %v", quoted, fromJSON, jsonErr, id, err)
		}
	})
}
