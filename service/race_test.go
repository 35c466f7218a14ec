//go:build race

package service

// underRace: the race detector makes everything ten times slower, and memory tests look for other things than races.
const underRace = true
