//go:build race

package service

// underRace: the race detector makes everything ten times slower.
const underRace = true
