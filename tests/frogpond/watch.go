package main

import (
	"context"
	"io"
)

func watchRoom(ctx context.Context, args []string, stdout, stderr io.Writer) int { return 1 }
