//go:build tools

// Package h2spec pins the conformance test of HTTP/2 and what it is built from: `bin/setup test` builds it.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
