package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/storage"
)

func newLog(e *env, s *settings) *cobra.Command {
	var asJSON bool
	var limit int
	var outcome, text string
	c := &cobra.Command{
		Use:   "log [ID]",
		Short: "List the request log, newest first, or show one request",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(s.logPath()); errors.Is(err, fs.ErrNotExist) {
				e.note("no request was logged yet (%s)", s.logPath())
				return nil
			}
			log, err := storage.Open(s.logConfig(slog.New(slog.DiscardHandler)))
			if err != nil {
				return err
			}
			defer log.Close()
			if len(args) == 1 {
				return showRecord(cmd.Context(), e, log, args[0])
			}
			rows, _, err := log.List(cmd.Context(), appliance.RecordQuery{Limit: limit, Outcome: appliance.Outcome(outcome), Text: text})
			if err != nil {
				return err
			}
			return printRecords(e, rows, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, one record a line")
	c.Flags().IntVarP(&limit, "limit", "n", 20, "at most this many")
	c.Flags().StringVar(&outcome, "outcome", "", "only stop, length, cancelled, error or interrupted")
	c.Flags().StringVar(&text, "grep", "", "only requests whose prompt or text contains this")
	s.serveFlags(c)
	return c
}

func printRecords(e *env, rows []appliance.Record, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(e.stdout)
		for i := range rows {
			if err := enc.Encode(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d+%d tokens\t%.0f ms\t%s\n", r.CreatedAt.Local().Format("2006-01-02 15:04:05"), r.ID, r.Outcome,
			r.PromptTokens, r.CompletionTokens, r.QueueMS+r.PrefillMS+r.DecodeMS, oneLine(r.Prompt, 50))
	}
	return t.Flush()
}

// oneLine shortens a text for a table.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func showRecord(ctx context.Context, e *env, log *storage.Log, id string) error {
	r, err := log.Get(ctx, id)
	if err != nil {
		return err
	}
	if r == nil {
		return fail(exitUsage, "`ganglion log` lists the ids", "no request %q in the log", id)
	}
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
