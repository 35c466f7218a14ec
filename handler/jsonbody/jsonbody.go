// Package jsonbody decodes the small JSON objects that clients of the shop send, and takes them at their word: one
// object, members spelt exactly and once, values of the right type, nothing before or after. What encoding/json
// overlooks (other case, repeated and unknown names, invalid UTF-8, trailing data) is refused with the reason.
//
// An object of strings and numbers never nests, so there is no depth to bound. Decoding allocates only what it returns.
package jsonbody

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"seckill/service/idgen"
)

// Field is a member that an object may have.
type Field struct {
	Name string
	// Into points to where the value goes: *string, *int64, *idgen.ID (a string in JSON), *time.Time (RFC 3339), or a
	// pointer to such a pointer (**string and so on, also **int), which stays nil if the member is absent.
	Into     any
	Required bool
}

// SyntaxError says that the text is not the object that was asked for, whatever its values mean.
type SyntaxError struct {
	Field   string // the member that is unknown or repeated, if that is what is wrong
	Message string
}

func (e *SyntaxError) Error() string { return e.Message }

// ValueError says that the value of a member cannot be used.
type ValueError struct {
	Field   string
	Message string
}

func (e *ValueError) Error() string { return e.Field + " " + e.Message }

// unfit copies the name, so that the compiler sees that fields do not outlive a call, and leaves them on the stack.
func unfit(field, message string) error {
	return &ValueError{Field: strings.Clone(field), Message: message}
}

// Decode reads an object with the given members, at most 64. The error is a *SyntaxError or a *ValueError. What was
// decoded before an error stays in place. Nothing refers to body afterwards.
func Decode(body []byte, fields ...Field) error {
	s := scanner{text: body}
	seen, err := s.object(fields)
	if err == nil {
		err = missing(fields, seen)
	}
	if _, ok := err.(*ValueError); ok && !json.Valid(body) {
		return &SyntaxError{Message: "the body is not valid JSON"} // further on, but it comes first
	}
	return err
}

func missing(fields []Field, seen uint64) error {
	for i := range fields {
		if fields[i].Required && seen&(1<<i) == 0 {
			return unfit(fields[i].Name, "is required")
		}
	}
	return nil
}

// object reads the whole text as one object and returns a bit for each field that was there.
func (s *scanner) object(fields []Field) (seen uint64, err error) {
	if s.next() != '{' {
		return 0, s.errorf("the body must be a JSON object")
	}
	s.pos++
	for s.next() != '}' {
		if seen != 0 {
			if s.next() != ',' {
				return 0, s.errorf("expected a comma or the end of the object")
			}
			s.pos++
		}
		i, err := s.name(fields, seen)
		if err != nil {
			return 0, err
		}
		if err := s.value(&fields[i]); err != nil {
			return 0, err
		}
		seen |= 1 << i
	}
	s.pos++
	if s.next(); s.pos < len(s.text) {
		return 0, s.errorf("there is more after the end of the object")
	}
	return seen, nil
}

// name reads a member's name and the colon, and finds its field.
func (s *scanner) name(fields []Field, seen uint64) (int, error) {
	s.next()
	name, err := s.string()
	if err != nil {
		return 0, err
	}
	i := 0
	for i < len(fields) && fields[i].Name != string(name) {
		i++
	}
	switch {
	case i == len(fields):
		return 0, &SyntaxError{Field: short(name), Message: "unknown field " + strconv.Quote(short(name))}
	case seen&(1<<i) != 0:
		return 0, &SyntaxError{Field: string(name), Message: "the field " + string(name) + " is there twice"}
	case s.next() != ':':
		return 0, s.errorf("expected a colon after the field's name")
	}
	s.pos++
	return i, nil
}

// short keeps a stranger's text from filling the answer.
func short(name []byte) string {
	const most = 64
	runes := 0
	for i := range string(name) {
		if runes == most {
			return string(name[:i]) + "…"
		}
		runes++
	}
	return string(name)
}

// value reads a member's value into its field.
func (s *scanner) value(f *Field) error {
	s.next()
	switch into := f.Into.(type) {
	case *idgen.ID, *string, *time.Time, **string, **time.Time:
		text, err := s.stringValue(f.Name)
		if err != nil {
			return err
		}
		return setText(f, text)
	case *int64:
		return s.integer(f.Name, into)
	case **int64:
		*into = new(int64)
		return s.integer(f.Name, *into)
	case **int:
		var n int64
		if err := s.integer(f.Name, &n); err != nil {
			return err
		}
		v := int(n)
		if int64(v) != n {
			return unfit(f.Name, "is out of range")
		}
		*into = &v
		return nil
	}
	panic("jsonbody: field " + f.Name + " decodes into an unsupported type")
}

func setText(f *Field, text []byte) error {
	switch into := f.Into.(type) {
	case *string:
		*into = string(text)
	case **string:
		v := string(text)
		*into = &v
	case *idgen.ID:
		if into.UnmarshalText(text) != nil {
			return unfit(f.Name, "must be an id: a positive number in decimal digits, as a string")
		}
	case *time.Time:
		return setTime(f.Name, into, text)
	case **time.Time:
		*into = new(time.Time)
		return setTime(f.Name, *into, text)
	}
	return nil
}

func setTime(name string, into *time.Time, text []byte) error {
	var t time.Time
	if t.UnmarshalText(text) != nil {
		return unfit(name, "must be a time as in RFC 3339, for example 2026-11-11T00:00:00Z")
	}
	*into = t.UTC()
	return nil
}
