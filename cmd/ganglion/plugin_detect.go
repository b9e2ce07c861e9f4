package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/gpu/tokenizer"
	"ganglion/plugins/builtin"
)

// sureZ is from where on a watermark is told to be there: chance makes that of one text in
// about 30,000.
const sureZ = 4

// detected is what is known of one text.
type detected struct {
	Text   string  `json:"text"` // file or id
	Tokens int     `json:"tokens"`
	Green  int     `json:"green"`
	Share  float64 `json:"green_share"`
	Z      float64 `json:"z"`
	P      float64 `json:"p"`
	Found  bool    `json:"watermark"`
}

func newPluginDetect(e *env, s *settings) *cobra.Command {
	d := detection{s: s}
	var asJSON bool
	var keyFile string
	c := &cobra.Command{
		Use:   "detect [flags] [FILE…]",
		Short: "Look for the watermark of plugin green-list in texts",
		Long: "Counts the green tokens of texts (files, stdin, or answers of the log with --id) under the key\n" +
			"and the settings that the plugin had. It prints their share, how many standard deviations\n" +
			fmt.Sprintf("that is above chance (z; from %d on the watermark is there), and the probability that a text\n", sureZ) +
			"without the watermark has as many (p). Files are cut into tokens by the model's tokenizer;\n" +
			"an answer of the log has its own. Several texts are counted together as well.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if keyFile != "" {
				b, err := os.ReadFile(keyFile)
				if err != nil {
					return fail(exitUsage, "", "--key-file: %v", err)
				}
				d.list.Key = strings.TrimRight(string(b), "\r\n")
			}
			if err := d.valid(); err != nil {
				return err
			}
			if err := d.files(cmd.Context(), args); err != nil {
				return err
			}
			if err := d.records(cmd.Context()); err != nil {
				return err
			}
			rows := d.result()
			if asJSON {
				return e.json(rows)
			}
			return e.table(detectTable(rows))
		},
	}
	f := c.Flags()
	f.StringVar(&d.list.Key, "key", "", "the plugin's `KEY`; other users of this machine can see it here")
	f.StringVar(&keyFile, "key-file", "", "`FILE` whose first line is the key")
	f.Float64Var(&d.list.Gamma, "gamma", 0.5, "share of the vocabulary that is green")
	f.IntVar(&d.list.Window, "window", 1, "tokens before that decide")
	f.StringArrayVar(&d.ids, "id", nil, "an answer of the log by its `ID`; may be repeated")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	s.modelFlags(c)
	return c
}

// detection is texts in which a watermark is looked for.
type detection struct {
	s     *settings
	list  builtin.GreenList
	ids   []string
	names []string
	texts [][]int32
}

// valid checks the settings as the plugin's schema does.
func (d *detection) valid() error {
	switch {
	case d.list.Key == "":
		return fail(exitUsage, "`--key` or `--key-file` says it", "the key of the watermark is needed")
	case !(d.list.Gamma >= 0.01 && d.list.Gamma <= 0.99):
		return fail(exitUsage, "", "--gamma %g is not between 0.01 and 0.99", d.list.Gamma)
	case d.list.Window < 1 || d.list.Window > 8:
		return fail(exitUsage, "", "--window %d is not between 1 and 8", d.list.Window)
	}
	return nil
}

// files reads files, or stdin where there are neither files nor ids.
func (d *detection) files(ctx context.Context, files []string) error {
	if len(files) == 0 && len(d.ids) == 0 {
		files = []string{"-"}
	}
	if len(files) == 0 {
		return nil
	}
	v, err := d.s.vocabulary(ctx)
	if err != nil {
		return err
	}
	for _, name := range files {
		text, err := d.read(name)
		if err != nil {
			return err
		}
		d.names = append(d.names, name)
		// Special tokens by name are text here, and a text has no token before it.
		d.texts = append(d.texts, v.Encode(text, tokenizer.EncodeOptions{}))
	}
	return nil
}

func (d *detection) read(name string) (string, error) {
	if name == "-" {
		return d.s.e.argOrStdin(nil)
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fail(exitUsage, "", "there is no file %s", name)
	}
	return string(b), err
}

// records reads answers of the log.
func (d *detection) records(ctx context.Context) error {
	if len(d.ids) == 0 {
		return nil
	}
	log, err := d.s.readLog(d.s.e.logger())
	if err != nil {
		return err
	}
	defer log.Close()
	for _, id := range d.ids {
		r, err := log.Get(ctx, id)
		if err != nil {
			return err
		}
		if r == nil {
			return noRecord(id)
		}
		tokens := make([]int32, len(r.Tokens))
		for i := range r.Tokens {
			tokens[i] = r.Tokens[i].ID
		}
		if len(tokens) == 0 {
			return fail(exitUsage, "`--log-text=false`, or their size, leaves them out", "the log has no tokens of %s", id)
		}
		d.names, d.texts = append(d.names, id), append(d.texts, tokens)
	}
	return nil
}

// result looks at each text, and at all of them together where there are several.
func (d *detection) result() (rows []detected) {
	row := func(name string, texts ...[]int32) {
		f := d.list.Detect(texts...)
		rows = append(rows, detected{Text: name, Tokens: f.Tokens, Green: f.Green, Share: f.Share(), Z: f.Z, P: f.P, Found: f.Z >= sureZ})
	}
	for i, tokens := range d.texts {
		row(d.names[i], tokens)
	}
	if len(d.texts) > 1 {
		row("together", d.texts...)
	}
	return rows
}

func detectTable(rows []detected) [][]string {
	table := [][]string{{"TEXT", "TOKENS", "GREEN", "Z", "P", "WATERMARK"}}
	for _, r := range rows {
		found := "no"
		if r.Found {
			found = "yes"
		}
		table = append(table, []string{r.Text, strconv.Itoa(r.Tokens), strconv.FormatFloat(100*r.Share, 'f', 1, 64) + " %",
			strconv.FormatFloat(r.Z, 'f', 1, 64), strconv.FormatFloat(r.P, 'g', 2, 64), found})
	}
	return table
}
