package main

import (
	"os"

	"github.com/alecthomas/kong"
)

// given tells whether the user set a flag, by itself or by its variable, rather than leaving it at its default.
func given(k *kong.Context, name string) bool {
	for _, flag := range k.Flags() {
		if flag.Name != name {
			continue
		}
		for _, variable := range flag.Envs {
			if _, ok := os.LookupEnv(variable); ok {
				return true
			}
		}
		for _, path := range k.Path {
			if path.Flag == flag {
				return true
			}
		}
	}
	return false
}
