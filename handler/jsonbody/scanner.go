package jsonbody

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON (RFC 8259) from a text that is in memory.
type scanner struct {
	text []byte
	pos  int
}

func (s *scanner) errorf(format string, args ...any) error {
	return &SyntaxError{Message: fmt.Sprintf(format, args...) + " (at byte " + strconv.Itoa(s.pos) + ")"}
}

// next skips white space and returns the byte that follows, 0 at the end. (A zero byte stands for nothing in JSON.)
func (s *scanner) next() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// string reads a string. The result may be a part of the text.
func (s *scanner) string() ([]byte, error) {
	if s.pos == len(s.text) || s.text[s.pos] != '"' {
		return nil, s.errorf("expected a string")
	}
	s.pos++
	start := s.pos
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			raw := s.text[start:s.pos]
			s.pos++
			return raw, s.checkUTF8(raw)
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			return nil, s.errorf("a control character inside a string")
		}
	}
	return nil, s.errorf("a string without end")
}

func (s *scanner) checkUTF8(raw []byte) error {
	if !utf8.Valid(raw) {
		return s.errorf("a string that is not valid UTF-8")
	}
	return nil
}

// escaped reads on in a string that began at start and has come to its first backslash.
func (s *scanner) escaped(start int) ([]byte, error) {
	b := bytes.Clone(s.text[start:s.pos])
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == '"':
			return b, s.checkUTF8(b)
		case c < ' ':
			return nil, s.errorf("a control character inside a string")
		case c != '\\':
			b = append(b, c)
			continue
		}
		var err error
		if b, err = s.escape(b); err != nil {
			return nil, err
		}
	}
	return nil, s.errorf("a string without end")
}

// escape appends what the escape after a backslash stands for.
func (s *scanner) escape(b []byte) ([]byte, error) {
	if s.pos == len(s.text) {
		return nil, s.errorf("a string without end")
	}
	c := s.text[s.pos]
	s.pos++
	if c == 'u' {
		r, err := s.codePoint()
		return utf8.AppendRune(b, r), err
	}
	i := bytes.IndexByte([]byte(`"\/bfnrt`), c)
	if i < 0 {
		return nil, s.errorf("an escape that JSON does not have")
	}
	return append(b, "\"\\/\b\f\n\r\t"[i]), nil
}

// codePoint reads the digits after \u, and the second half if they are the first half of a pair.
func (s *scanner) codePoint() (rune, error) {
	r, err := s.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if bytes.HasPrefix(s.text[s.pos:], []byte(`\u`)) {
		s.pos += 2
		second, err := s.hex4()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
			return pair, nil
		}
	}
	return 0, s.errorf("half of a surrogate pair")
}

func (s *scanner) hex4() (rune, error) {
	if len(s.text)-s.pos < 4 {
		return 0, s.errorf("an escape with too few digits")
	}
	var r rune
	for _, c := range s.text[s.pos : s.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, s.errorf("an escape with other than hexadecimal digits")
		}
		r = r<<4 | rune(c)
	}
	s.pos += 4
	return r, nil
}

// stringValue reads the value of a field that has to be a string.
func (s *scanner) stringValue(field string) ([]byte, error) {
	if s.pos < len(s.text) && s.text[s.pos] == '"' {
		return s.string()
	}
	return nil, unfit(field, "must be a string") // or no JSON at all, which Decode finds out
}

// integer reads the value of a field that has to be a whole number.
func (s *scanner) integer(field string, into *int64) error {
	start := s.pos
	for s.pos < len(s.text) && bytes.IndexByte([]byte("+-.0123456789eE"), s.text[s.pos]) >= 0 {
		s.pos++
	}
	digits := bytes.TrimPrefix(s.text[start:s.pos], []byte("-"))
	if len(digits) == 0 || bytes.ContainsAny(digits, "+-.eE") {
		return unfit(field, "must be a whole number")
	}
	if digits[0] == '0' && len(digits) > 1 {
		return s.errorf("a number that starts with a zero")
	}
	n, err := strconv.ParseInt(string(s.text[start:s.pos]), 10, 64)
	if err != nil {
		return unfit(field, "is out of range")
	}
	*into = n
	return nil
}
