//go:build symbolize

package main

import _ "github.com/upfront-mem/upfront/platform/symbolize"
