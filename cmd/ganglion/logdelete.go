package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/storage"
)

func newLogDelete(e *env, s *settings) *cobra.Command {
	c := &cobra.Command{
		Use: "delete [flags] ID...", Short: "Delete requests from the log, with every trace of their text",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, "`ganglion log` lists the ids", "log delete takes the ids of requests")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeLog(func(log *storage.Log) error {
				if log == nil {
					return noRecord(args[0])
				}
				for _, id := range args {
					found, err := log.Delete(cmd.Context(), id)
					if err != nil {
						return err
					}
					if !found {
						return noRecord(id)
					}
				}
				e.note("%s deleted", requests(int64(len(args))))
				return nil
			})
		},
	}
	s.serveFlags(c)
	return c
}

func newLogPurge(e *env, s *settings) *cobra.Command {
	var all bool
	var older string
	c := &cobra.Command{
		Use: "purge [flags]", Short: "Delete old requests from the log, or all, with every trace of their text", Args: noArgs("`ganglion log delete` takes ids"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all == (older != "") {
				return fail(exitUsage, "", "log purge takes either --older AGE or --all")
			}
			var before time.Time
			if older != "" {
				age, err := appliance.ParseDuration(older)
				if err != nil {
					return fail(exitUsage, "", "--older: %v", err)
				}
				before = time.Now().Add(-age)
			}
			return s.changeLog(func(log *storage.Log) error { return purge(cmd.Context(), e, log, before) })
		},
	}
	c.Flags().StringVar(&older, "older", "", "requests that came longer ago than this `AGE`, such as 12h or 30d")
	c.Flags().BoolVar(&all, "all", false, "every request")
	s.serveFlags(c)
	return c
}

func purge(ctx context.Context, e *env, log *storage.Log, before time.Time) (err error) {
	n := int64(0)
	if log != nil {
		n, err = log.Purge(ctx, before)
	}
	if err == nil {
		e.note("%s deleted", requests(n))
	}
	return err
}

// changeLog opens the log for a change; log is nil where there is none yet.
func (s *settings) changeLog(change func(log *storage.Log) error) error {
	if _, err := os.Stat(s.logPath()); errors.Is(err, fs.ErrNotExist) {
		return change(nil)
	}
	log, err := s.readLog(s.e.logger())
	if err != nil {
		return err
	}
	return errors.Join(change(log), log.Close())
}

// requests is a number of requests in words.
func requests(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}
