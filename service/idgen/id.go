package idgen

import (
	"fmt"
	"strconv"
)

// ID is an identifier from a Generator. A valid ID is positive; zero means "none yet".
//
// As text and in JSON it is a string of decimal digits, because JavaScript and many JSON libraries read numbers as
// doubles, which lose the last digits of an ID. In a database it is a BIGINT.
type ID int64

// ParseID reads the decimal form that String writes. It refuses signs, spaces, leading zeros, digits other than 0-9, zero
// and numbers of more than 63 bits with ErrInvalid. So each ID has exactly one spelling.
func ParseID(s string) (ID, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v <= 0 || strconv.FormatInt(v, 10) != s {
		return 0, fmt.Errorf("%w: want a positive number of at most 63 bits in decimal digits", ErrInvalid)
	}
	return ID(v), nil
}

// String returns the ID in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalText writes the ID in decimal; encoding/json adds the quotes. It returns ErrInvalid for an ID that is not
// positive, because it could not be read back. Tag an optional field with omitzero.
func (id ID) MarshalText() ([]byte, error) {
	if id <= 0 {
		return nil, fmt.Errorf("%w: %d is not positive", ErrInvalid, int64(id))
	}
	return strconv.AppendInt(nil, int64(id), 10), nil
}

// UnmarshalText reads what MarshalText wrote, and refuses everything else as ParseID does. encoding/json refuses a JSON
// number for a type that reads text. A JSON null leaves the ID unchanged, as is usual in Go.
func (id *ID) UnmarshalText(text []byte) error {
	v, err := ParseID(string(text))
	if err == nil {
		*id = v
	}
	return err
}
