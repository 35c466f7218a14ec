//go:build !race

package service

const underRace = false
