package repository

import "strconv"

// statement is an INSERT with many rows. Numbers and times stand in it as they are: nothing in them can be taken for SQL,
// and an argument of its own costs more than its digits. Strings are arguments.
type statement struct {
	sql    []byte
	args   []any
	length int // of all arguments
}

// newStatement begins with the text up to VALUES; size is about how long the rows will be.
func newStatement(begin string, size int) *statement {
	return &statement{sql: append(make([]byte, 0, len(begin)+size), begin...)}
}

func (s *statement) text() string { return string(s.sql) }

// room is what the arguments take in the text, at most: each of their bytes may need a backslash.
func (s *statement) room() int { return 2 * s.length }

// row begins a row, end ends it; in between are its values.
func (s *statement) row() *statement {
	if s.endsIn(')') { // another row is before it
		s.sql = append(s.sql, ',')
	}
	s.sql = append(s.sql, '(')
	return s
}

func (s *statement) end() { s.sql = append(s.sql, ')') }

func (s *statement) value() {
	if !s.endsIn('(') { // another value is before it
		s.sql = append(s.sql, ',')
	}
}

func (s *statement) endsIn(c byte) bool { return s.sql[len(s.sql)-1] == c }

func (s *statement) int(n int64) *statement {
	s.value()
	s.sql = strconv.AppendInt(s.sql, n, 10)
	return s
}

func (s *statement) str(text string) *statement {
	s.value()
	s.sql = append(s.sql, '?')
	s.args = append(s.args, text)
	s.length += len(text)
	return s
}

// raw is SQL as it is, such as a time that many rows share.
func (s *statement) raw(sql string) *statement {
	s.value()
	s.sql = append(s.sql, sql...)
	return s
}
