// Package storage keeps the request log in one SQLite file.
//
// It owns the file, its schema and its size. It promises:
//
//   - A row exists before the first byte of an answer (Begin waits for it, for a
//     short time) and is closed at the answer's end.
//   - Nothing here stops or slows an answer: records pass a bounded queue to one
//     writer goroutine, which writes a batch in a transaction. What could not be
//     written in time is counted and shown by Stats.
//   - A killed process loses no row whose Begin had returned and leaves a sound
//     file; its open rows are marked interrupted when the log is next opened.
//   - A damaged file is renamed, with the date in its name, and a new one is begun.
//   - The file stays below its limits of age and size.
//   - With NoText, no prompt, body, answer or token reaches any file.
//
// The package imports appliance alone and is imported by cmd. It uses cgo, through
// github.com/mattn/go-sqlite3. Formats: the schema in migrations/*.sql, SQLite's
// file and write-ahead log formats (https://sqlite.org/fileformat2.html).
package storage
