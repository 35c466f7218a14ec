package main

import (
	"context"
	"errors"
)

type demoCmd struct{}

func (demoCmd) Run(context.Context, *output) error { return errors.New("not yet") }
