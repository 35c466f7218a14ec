// Package jsonbody decodes the JSON object of a request strictly, with encoding/json/v2, and names the field that is
// wrong. It refuses duplicate and unknown fields, names in other case, null, invalid UTF-8, and data after the object.
package jsonbody

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"seckill/service/idgen"
)

// SyntaxError reports a body that is not the expected object, whatever the values of its fields.
type SyntaxError struct {
	Field   string // the unknown or duplicate field, or ""
	Message string
}

func (e *SyntaxError) Error() string { return e.Message }

// ValueError reports a field that is missing or has a value that cannot be used.
type ValueError struct {
	Field   string
	Message string
}

func (e *ValueError) Error() string { return e.Field + " " + e.Message }

// Decode decodes body into the struct that into points to. The struct is flat: its fields are a string, an int, an int64, a
// time.Time or an idgen.ID, each with a json tag, or a pointer to one of these, which makes the field optional. Times are
// converted to UTC. Errors are of type *SyntaxError or *ValueError; a syntax error anywhere in the body is reported before
// any value error.
func Decode(body []byte, into any) error {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(body, &fields); err != nil {
		return syntaxError(err)
	}
	if fields == nil { // the body is null
		return notAnObject
	}
	var firstError error
	for field, value := range reflect.ValueOf(into).Elem().Fields() {
		name := field.Tag.Get("json")
		text, present := fields[name]
		delete(fields, name)
		if err := decodeField(name, text, present, value); firstError == nil {
			firstError = err
		}
	}
	if len(fields) > 0 {
		name := shorten(slices.Min(slices.Collect(maps.Keys(fields))))
		return &SyntaxError{Field: name, Message: fmt.Sprintf("unknown field %q", name)}
	}
	return firstError
}

func decodeField(name string, text jsontext.Value, present bool, into reflect.Value) error {
	switch {
	case !present && into.Kind() == reflect.Pointer:
		return nil
	case !present:
		return &ValueError{name, "is required"}
	case text.Kind() == jsontext.KindNull:
		return &ValueError{name, "must not be null"}
	}
	target := into.Addr().Interface()
	if err := json.Unmarshal(text, target); errors.Is(err, strconv.ErrRange) {
		return &ValueError{name, "is out of range"}
	} else if err != nil {
		return &ValueError{name, "must be " + expected(target)}
	}
	switch t := target.(type) {
	case *time.Time:
		*t = t.UTC()
	case **time.Time:
		**t = (*t).UTC()
	}
	return nil
}

// expected describes the values that target accepts.
func expected(target any) string {
	switch target.(type) {
	case *idgen.ID, **idgen.ID:
		return "an id: a positive number in decimal digits, as a string"
	case *time.Time, **time.Time:
		return "a time as in RFC 3339, for example 2026-11-11T00:00:00Z"
	case *int, **int, *int64, **int64:
		return "a whole number"
	default:
		return "a string"
	}
}

var notAnObject = &SyntaxError{Message: "the body must be a JSON object"}

func syntaxError(err error) error {
	e, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok: // valid JSON, but an array, a string or a number
		return notAnObject
	case errors.Is(e.Err, jsontext.ErrDuplicateName):
		name := shorten(e.JSONPointer.LastToken())
		return &SyntaxError{Field: name, Message: fmt.Sprintf("duplicate field %q", name)}
	default:
		return &SyntaxError{Message: fmt.Sprintf("the body is not valid JSON: %s (at byte %d)", shorten(e.Err.Error()), e.ByteOffset)}
	}
}

// shorten limits text of the client that is repeated in an answer.
func shorten(text string) string {
	const limit = 64
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
