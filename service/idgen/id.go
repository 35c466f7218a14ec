package idgen

import (
	"fmt"
	"math"
	"strconv"
)

// ID is an identifier from a Generator. A valid ID is positive; zero means "none yet".
//
// As text and in JSON it is a string of decimal digits, because JavaScript and many JSON libraries read numbers as
// doubles, which lose the last digits of an ID. In a database it is a BIGINT.
type ID int64

// ParseID reads the decimal form that String writes. It refuses signs, spaces, leading zeros, digits other than 0-9, zero
// and numbers of more than 63 bits with ErrInvalid. So each ID has exactly one spelling.
func ParseID(s string) (ID, error) { return parse(s) }

// String returns the ID in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalText writes the ID in decimal; encoding/json adds the quotes. It returns ErrInvalid for an ID that is not
// positive, because it could not be read back. Tag an optional field with omitzero.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// AppendText is MarshalText with the caller's buffer.
func (id ID) AppendText(b []byte) ([]byte, error) {
	if id <= 0 {
		return b, fmt.Errorf("%w: %d is not positive", ErrInvalid, int64(id))
	}
	return strconv.AppendInt(b, int64(id), 10), nil
}

// UnmarshalText reads what MarshalText wrote, and refuses everything else as ParseID does. encoding/json refuses a JSON
// number for a type that reads text. A JSON null leaves the ID unchanged, as is usual in Go.
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
