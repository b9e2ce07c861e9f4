// Package pipelinetest has plugins written in Go, for tests of what runs plugins: each is
// a [pipeline.Instance] over memory of its own, and sees no more than a guest would.
package pipelinetest
