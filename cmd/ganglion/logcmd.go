package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/storage"
)

func newLog(e *env, s *settings) *cobra.Command {
	var asJSON bool
	var limit int
	var outcome, text string
	c := &cobra.Command{
		Use:   "log [flags] [ID]",
		Short: "List the request log, newest first, or show one request",
		Args:  atMostOne("id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return fail(exitUsage, "", "--limit %d is less than 1", limit)
			}
			if outcome != "" && !slices.Contains(outcomes, appliance.Outcome(outcome)) {
				return fail(exitUsage, "", "--outcome %q is none of %v", outcome, outcomes)
			}
			if _, err := os.Stat(s.logPath()); errors.Is(err, fs.ErrNotExist) {
				if len(args) == 1 {
					return noRecord(args[0])
				}
				e.note("no request was logged yet (%s)", s.logPath())
				return nil
			}
			log, err := s.readLog(e.logger())
			if err != nil {
				return err
			}
			defer log.Close()
			if len(args) == 1 {
				return showRecord(cmd.Context(), e, log, args[0])
			}
			rows, err := records(cmd.Context(), log, appliance.RecordQuery{Outcome: appliance.Outcome(outcome), Text: text}, limit)
			if err != nil {
				return err
			}
			return printRecords(e, rows, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, one record a line")
	c.Flags().IntVarP(&limit, "limit", "n", 20, "at most `N` requests")
	c.Flags().StringVar(&outcome, "outcome", "", "only requests that ended so: `stop|length|cancelled|error|interrupted`, or open ones")
	c.Flags().StringVar(&text, "grep", "", "only requests whose prompt or answer contains `TEXT`")
	s.serveFlags(c)
	for _, v := range []*cobra.Command{newLogDelete(e, s), newLogPurge(e, s)} {
		v.PreRunE = func(c *cobra.Command, _ []string) error { return s.load(c) }
		v.DisableFlagsInUseLine = true
		c.AddCommand(v)
	}
	return c
}

// outcomes are the words that --outcome takes.
var outcomes = []appliance.Outcome{appliance.OutcomeOpen, appliance.OutcomeStop, appliance.OutcomeLength,
	appliance.OutcomeCancelled, appliance.OutcomeError, appliance.OutcomeInterrupted}

// records reads pages until there are limit records or no more.
func records(ctx context.Context, log *storage.Log, q appliance.RecordQuery, limit int) ([]appliance.Record, error) {
	const page = 500
	var rows []appliance.Record
	for len(rows) < limit {
		q.Limit = min(limit-len(rows), page)
		more, next, err := log.List(ctx, q)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
		if next == "" {
			break
		}
		q.Before = next
	}
	return rows, nil
}

func printRecords(e *env, rows []appliance.Record, asJSON bool) error {
	if asJSON {
		for i := range rows {
			if err := e.json(&rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	table := [][]string{{"TIME", "ID", "OUTCOME", "TOKENS", "MS", "PROMPT"}}
	for _, r := range rows {
		table = append(table, []string{r.CreatedAt.Local().Format("2006-01-02 15:04:05"), r.ID, string(r.Outcome),
			fmt.Sprintf("%d+%d", r.PromptTokens, r.CompletionTokens), fmt.Sprintf("%.0f", r.QueueMS+r.PrefillMS+r.DecodeMS), oneLine(r.Prompt, 50)})
	}
	return e.table(table)
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
		return noRecord(id)
	}
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// noRecord says that the log has no request of this id.
func noRecord(id string) error {
	return fail(exitUsage, "`ganglion log` lists the ids", "no request %q in the log", id)
}
