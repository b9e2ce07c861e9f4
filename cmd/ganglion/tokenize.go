package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"ganglion/gpu/tokenizer"
)

func newTokenize(e *env, s *settings) *cobra.Command {
	var asJSON, plain, noBOS bool
	var repeat int
	c := &cobra.Command{
		Use:   "tokenize [flags] [TEXT]",
		Short: "Print the tokens of a text (argument or stdin), one a line",
		Args:  atMostOne("text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := e.argOrStdin(args)
			if err != nil {
				return err
			}
			v, err := s.vocabulary(cmd.Context())
			if err != nil {
				return err
			}
			o := tokenizer.EncodeOptions{AddSpecial: !noBOS, ParseSpecial: !plain}
			if repeat > 0 {
				return e.json(timeEncode(v, text, o, repeat))
			}
			ids := v.Encode(text, o)
			return e.printTokens(v, ids, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array of {id, text}")
	c.Flags().BoolVar(&plain, "plain", false, "do not parse special tokens in the text")
	c.Flags().BoolVar(&noBOS, "no-bos", false, "do not add the beginning-of-sequence token")
	c.Flags().IntVar(&repeat, "repeat", 0, "measure instead: encode so many times and print the median time as JSON")
	s.modelFlags(c)
	return c
}

// encodeTime is what `ganglion tokenize --repeat` measures.
type encodeTime struct {
	Bytes   int     `json:"bytes"`
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"` // median
}

func timeEncode(v *tokenizer.Tokenizer, text string, o tokenizer.EncodeOptions, repeat int) encodeTime {
	r := encodeTime{Bytes: len(text)}
	seconds := make([]float64, repeat)
	for i := range seconds {
		start := time.Now()
		r.Tokens = len(v.Encode(text, o))
		seconds[i] = time.Since(start).Seconds()
	}
	r.Seconds = median(seconds)
	return r
}

func (e *env) printTokens(v *tokenizer.Tokenizer, ids []int32, asJSON bool) error {
	type token struct {
		ID   int32  `json:"id"`
		Text string `json:"text"`
	}
	list := make([]token, len(ids))
	for i, id := range ids {
		list[i] = token{id, string(v.AppendPiece(nil, id, true))}
		if asJSON && !utf8.ValidString(list[i].Text) {
			list[i].Text = v.Text(id) // JSON has no bytes: the token goes by its name in the file
		}
	}
	if asJSON {
		return e.json(list)
	}
	w := bufio.NewWriter(e.stdout)
	for _, t := range list {
		fmt.Fprintf(w, "%d\t%s\n", t.ID, strconv.Quote(t.Text)) // Flush tells a failure
	}
	return w.Flush()
}

func newDetokenize(e *env, s *settings) *cobra.Command {
	var special bool
	c := &cobra.Command{
		Use:   "detokenize [flags] [ID…]",
		Short: "Print the text of token ids (arguments or stdin)",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args, " ")
			if len(args) == 0 {
				in, err := e.argOrStdin(nil)
				if err != nil {
					return err
				}
				text = in
			}
			v, err := s.vocabulary(cmd.Context())
			if err != nil {
				return err
			}
			ids, err := parseTokens(text, v.VocabSize())
			if err != nil {
				return err
			}
			_, err = e.stdout.Write(v.Decode(ids, special))
			return err
		},
	}
	c.Flags().BoolVar(&special, "special", false, "show control tokens too")
	s.modelFlags(c)
	return c
}

// parseTokens reads ids separated by commas or white space.
func parseTokens(text string, vocab int) ([]int32, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	ids := make([]int32, len(words))
	for i, w := range words {
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil || n < 0 || n >= int64(vocab) {
			return nil, fail(exitUsage, "", "token %q is not an id of the vocabulary (0 to %d)", w, vocab-1)
		}
		ids[i] = int32(n)
	}
	if len(ids) == 0 {
		return nil, fail(exitUsage, "for example 2,818,5279", "no token ids")
	}
	return ids, nil
}

// argOrStdin is the one argument, or all of stdin. At a terminal stdin is not
// waited for.
func (e *env) argOrStdin(args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	if e.stdinTTY && len(args) == 0 {
		return "", fail(exitUsage, "give it as an argument, or pipe it in", "no text")
	}
	const limit = 64 << 20
	b, err := io.ReadAll(io.LimitReader(e.stdin, limit+1))
	if err != nil {
		return "", fmt.Errorf("stdin: %w", err)
	}
	if len(b) > limit {
		return "", fail(exitUsage, "", "stdin holds more than %d MiB", limit>>20)
	}
	return string(b), nil
}
