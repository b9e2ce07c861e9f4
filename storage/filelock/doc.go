// Package filelock locks files between processes. A lock is advisory, belongs to the open
// file and ends with it, however the process ends.
package filelock
