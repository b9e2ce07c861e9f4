package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/plugins/abi"
	"ganglion/plugins/builtin"
	"ganglion/plugins/host"
	"ganglion/plugins/plugintest"
	"ganglion/plugins/sign"
)

// listedPlugin is a plugin as `ganglion plugin list` shows it.
type listedPlugin struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Hash         string   `json:"sha256"`
	Place        string   `json:"place"` // "built in", or the file
	Signature    string   `json:"signature"`
	State        string   `json:"state"` // ready, or why it is not
	Slot         string   `json:"slot"`
	Permissions  []string `json:"permissions"`
	OnError      string   `json:"on_error"`
	Description  string   `json:"description"`
	MicrosPerTok float64  `json:"us_per_token,omitempty"`
	FuelPerTok   int64    `json:"fuel_per_token,omitempty"`
}

func newPluginList(e *env, s *settings) *cobra.Command {
	var asJSON, cost bool
	c := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"},
		Short: "List the plugins of this machine: those built in and those in the folder",
		Args:  noArgs("`ganglion plugin test FILE` looks at one file"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l := lister{s: s, cost: cost}
			if err := l.open(); err != nil {
				return err
			}
			defer l.close()
			rows, err := l.all(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return e.json(rows)
			}
			return e.table(pluginTable(rows, cost))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&cost, "cost", false, "measure what a token costs, without a model")
	return c
}

// lister looks at plugins.
type lister struct {
	s    *settings
	cost bool
	keys sign.Keys
	r    *host.Runtime
}

func (l *lister) open() (err error) {
	if l.keys, err = sign.ReadKeys(l.s.pluginKeysDir()); err != nil {
		return fail(exitUsage, "", "%v", err)
	}
	l.r, err = host.New(l.s.pluginHost())
	return err
}

func (l *lister) close() { _ = l.r.Close() }

func (l *lister) all(cmd *cobra.Command) ([]listedPlugin, error) {
	rows := []listedPlugin{}
	for _, n := range builtin.Names() {
		b, _ := builtin.Module(n)
		row := l.one(cmd, b)
		row.Place, row.Signature = "built in", "-"
		rows = append(rows, row)
	}
	files, err := filepath.Glob(filepath.Join(l.s.pluginsDir(), "*.wasm"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went away meanwhile
		}
		row := listedPlugin{State: "refused"}
		if err == nil {
			row = l.one(cmd, b)
		} else {
			row.State = "refused: " + err.Error()
		}
		if row.Name == "" {
			row.Name = strings.TrimSuffix(filepath.Base(path), ".wasm")
		}
		row.Place = path
		rows = append(rows, row)
	}
	return rows, nil
}

// one looks at one file: it is loaded as a server would.
func (l *lister) one(cmd *cobra.Command, file []byte) listedPlugin {
	row := listedPlugin{State: "ready"}
	key, err := l.keys.Verify(file)
	switch {
	case err == nil:
		row.Signature = "good, key " + key
	case errors.Is(err, sign.ErrUnsigned):
		row.Signature = "none"
	case errors.Is(err, sign.ErrUnknown):
		row.Signature = "by unknown key " + key
	default:
		row.Signature = "BAD"
	}
	m, err := host.Inspect(file)
	if err == nil {
		row.describe(m)
		var p *host.Plugin
		if p, err = l.r.Load(cmd.Context(), file); err == nil {
			row.Hash = p.Hash()
			p.Close()
		}
	}
	if err != nil {
		row.State = "refused: " + err.Error()
		return row
	}
	if l.cost {
		l.measure(cmd, file, &row)
	}
	return row
}

func (row *listedPlugin) describe(m *abi.Manifest) {
	row.Name, row.Version, row.Slot, row.OnError, row.Description = m.Name, m.Version, string(m.Slot), m.OnError, m.Description
	row.Permissions = append([]string{}, m.Capabilities...)
	if m.View.Text {
		row.Permissions = append(row.Permissions, "text")
	}
	if m.View.History.Kind != abi.HistoryNone {
		row.Permissions = append(row.Permissions, "history")
	}
	if m.View.Holdback > 0 {
		row.Permissions = append(row.Permissions, "holdback")
	}
}

// measure sums what the hooks of one token cost, in the median.
func (l *lister) measure(cmd *cobra.Command, file []byte, row *listedPlugin) {
	rows, err := plugintest.Measure(cmd.Context(), file, plugintest.Options{Host: l.s.pluginHost()}, 100)
	if err != nil || len(rows) == 0 {
		return // it wants a configuration of its own
	}
	at := rows[min(1, len(rows)-1)] // with 256 candidates, where there is a choice
	for _, h := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookChoose, abi.HookAccept, abi.HookText} {
		f := at.Hooks[h.String()]
		row.MicrosPerTok += f.P50US
		row.FuelPerTok += f.P50Fuel
	}
}

func pluginTable(rows []listedPlugin, cost bool) [][]string {
	head := []string{"NAME", "VERSION", "SHA256", "SLOT", "SIGNATURE", "PERMISSIONS", "STATE", "PLACE"}
	if cost {
		head = append(head, "µs/TOKEN", "FUEL/TOKEN")
	}
	table := [][]string{head}
	for _, r := range rows {
		hash := r.Hash
		if len(hash) > 12 {
			hash = hash[:12]
		}
		permissions := strings.Join(r.Permissions, ",")
		if permissions == "" {
			permissions = "-"
		}
		cells := []string{r.Name, r.Version, hash, r.Slot, r.Signature, permissions, r.State, r.Place}
		if cost {
			cells = append(cells, strconv.FormatFloat(r.MicrosPerTok, 'f', 2, 64), strconv.FormatInt(r.FuelPerTok, 10))
		}
		table = append(table, cells)
	}
	return table
}
