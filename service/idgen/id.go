package idgen

import (
	"fmt"
	"math"
	"strconv"
)

// ID is an identifier that a Generator handed out. A valid ID is positive; zero stands for "none yet".
//
// As text and in JSON it is a string of decimal digits, because an ID does not fit in the double that JavaScript and
// many JSON libraries read numbers into. In a database it is a BIGINT: database/sql and gorm take it as the int64 it is.
type ID int64

// ParseID reads the canonical decimal form that String writes. Signs, spaces, leading zeros, other digits than 0-9,
// zero and numbers beyond 63 bits are refused with an error for which errors.Is(err, ErrInvalid) holds. So each ID has
// one spelling only, and text that compares equal means the same ID.
func ParseID(s string) (ID, error) { return parse(s) }

// String returns the ID in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalText writes the ID in decimal; encoding/json uses it and adds the quotes. An ID that is not positive fails
// with ErrInvalid, since nobody could read it back. Tag an optional field with omitzero.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// AppendText is MarshalText for callers that bring the buffer.
func (id ID) AppendText(b []byte) ([]byte, error) {
	if id <= 0 {
		return b, fmt.Errorf("%w: %d is not positive", ErrInvalid, int64(id))
	}
	return strconv.AppendInt(b, int64(id), 10), nil
}

// UnmarshalText reads what MarshalText wrote and refuses all else as ParseID does. A JSON number never gets here:
// encoding/json refuses it for a type that reads text. A JSON null leaves the ID as it was, as is usual in Go.
func (id *ID) UnmarshalText(text []byte) error {
	v, err := parse(text)
	if err != nil {
		return err
	}
	*id = v
	return nil
}

// maxDigits is the number of digits of math.MaxInt64.
const maxDigits = 19

func parse[T string | []byte](s T) (ID, error) {
	if len(s) == 0 || len(s) > maxDigits {
		return 0, fmt.Errorf("%w: want 1 to %d digits, got %d bytes", ErrInvalid, maxDigits, len(s))
	}
	if s[0] == '0' {
		return 0, fmt.Errorf("%w: starts with a zero", ErrInvalid)
	}
	var v uint64 // 19 digits are below 10^19, which fits in 64 bits
	for i := range len(s) {
		digit := s[i] - '0'
		if digit > 9 {
			return 0, fmt.Errorf("%w: byte %d is not a digit", ErrInvalid, i)
		}
		v = v*10 + uint64(digit)
	}
	if v > math.MaxInt64 {
		return 0, fmt.Errorf("%w: more than 63 bits", ErrInvalid)
	}
	return ID(v), nil
}
