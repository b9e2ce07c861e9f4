package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ganglion/plugins/abi"
	"ganglion/plugins/builtin"
	"ganglion/plugins/host"
	"ganglion/plugins/js"
	"ganglion/plugins/plugintest"
	"ganglion/plugins/registry"
	"ganglion/plugins/sign"
)

// listedPlugin is a plugin as `ganglion plugin list` shows it.
type listedPlugin struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Hash        string   `json:"sha256"`
	Place       string   `json:"place"`
	Signature   string   `json:"signature"`
	State       string   `json:"state"` // ready, or why it is not
	Slot        string   `json:"slot"`
	Permissions []string `json:"permissions"`
	OnError     string   `json:"on_error"`
	Description string   `json:"description"`
	US          float64  `json:"us_per_token,omitempty"`
	Fuel        int64    `json:"fuel_per_token,omitempty"`
}

func newPluginList(e *env, s *settings) *cobra.Command {
	var asJSON, cost bool
	c := &cobra.Command{
		Use: "list [flags]", Aliases: []string{"ls"},
		Short: "List the plugins of this machine: those built in and those in the folder",
		Args:  noArgs("`ganglion plugin test FILE` looks at one file"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := s.listPlugins(cmd.Context(), cost)
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
	c.Flags().BoolVar(&cost, "cost", false, "measure what a token costs with those built in, without a model")
	s.addFlags(c.Flags(), func(f string) bool { return f == "data" || f == "plugin-dir" || f == "plugin-signing" })
	return c
}

// listPlugins loads all plugins as a server would, and lists them.
func (s *settings) listPlugins(ctx context.Context, cost bool) (rows []listedPlugin, err error) {
	keys, err := sign.ReadKeys(s.pluginKeysDir())
	if err != nil {
		return nil, fail(exitUsage, "", "%v", err)
	}
	runtime, err := host.New(s.pluginHost(s.e.logger()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	r, err := registry.New(registry.Options{
		Runtime: runtime, BuiltIn: builtin.Files(), Dir: s.pluginDir(), Policy: registry.Policy(s.PluginSigning), Keys: keys, Script: js.Module,
		State: filepath.Join(s.paths.State, "plugins-quarantined.json"),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.Scan(ctx)
	list, rejected := r.List()
	rows = []listedPlugin{}
	for i := range list {
		row := listed(&list[i])
		if file, ok := builtin.Module(row.Name); ok && cost {
			s.cost(ctx, file, &row)
		}
		rows = append(rows, row)
	}
	for _, x := range rejected {
		rows = append(rows, listedPlugin{Name: filepath.Base(x.Place), Hash: x.Hash, Place: x.Place, State: "rejected: " + x.Reason, Permissions: []string{}})
	}
	return rows, ctx.Err()
}

// listed describes a plugin of the registry.
func listed(in *registry.Info) listedPlugin {
	m := in.Manifest
	row := listedPlugin{
		Name: m.Name, Version: m.Version, Hash: in.Hash, Place: in.Place, Signature: string(in.Signature), State: "ready",
		Slot: string(m.Slot), OnError: m.OnError, Description: m.Description, Permissions: permissions(m),
	}
	if in.Key != "" {
		row.Signature += ", key " + in.Key
	}
	switch {
	case in.Quarantined != nil:
		row.State = "quarantined: " + in.Quarantined.Reason
	case in.Update != "":
		row.State = "ready; update rejected: " + in.Update
	}
	return row
}

// permissions are all that a plugin may see, use and do: its capabilities, then what it sees,
// then what it changes.
func permissions(m *abi.Manifest) []string {
	list := append([]string{}, m.Capabilities...)
	v := &m.View
	for _, p := range []struct {
		name string
		has  bool
	}{
		{"candidates", v.N > 0}, {"full", v.Logits == abi.LogitsFull}, {"gather", len(v.Gather) > 0 || v.GatherEOG},
		{"history", v.History.Kind != abi.HistoryNone}, {"text", v.Text},
		{"prompt", m.Hooks.Has(abi.HookPrompt)}, {"edits", v.Edits > 0}, {"mask", v.Mask}, {"cut", m.Truncates},
		{"temperature", m.Hooks.Has(abi.HookPlan) || m.Hooks.Has(abi.HookLogits)}, {"choose", m.Hooks.Has(abi.HookChoose)},
		{"force", m.Hooks.Has(abi.HookPlan) || m.Hooks.Has(abi.HookAccept)},
		{"rewrite", m.Hooks.Has(abi.HookText)}, {"holdback", v.Holdback > 0},
	} {
		if p.has {
			list = append(list, p.name)
		}
	}
	return list
}

// cost sums what the hooks of one token cost, in the median.
func (s *settings) cost(ctx context.Context, file []byte, row *listedPlugin) {
	rows, err := plugintest.Measure(ctx, file, plugintest.Options{Host: s.pluginHost(s.e.logger())}, 100)
	if err != nil || len(rows) == 0 {
		return // it wants a configuration of its own
	}
	at := rows[min(1, len(rows)-1)] // with 256 candidates, where there is a choice
	for _, h := range []abi.Hook{abi.HookPlan, abi.HookLogits, abi.HookChoose, abi.HookAccept, abi.HookText} {
		f := at.Hooks[h.String()]
		row.US += f.P50US
		row.Fuel += f.P50Fuel
	}
}

func pluginTable(rows []listedPlugin, cost bool) [][]string {
	head := []string{"NAME", "VERSION", "SHA256", "SLOT", "SIGNATURE", "PERMISSIONS", "STATE", "PLACE"}
	if cost {
		head = append(head, "µs/TOKEN", "FUEL/TOKEN")
	}
	orDash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	table := [][]string{head}
	for _, r := range rows {
		cells := []string{r.Name, orDash(r.Version), r.Hash[:min(len(r.Hash), 12)], orDash(r.Slot), orDash(r.Signature), orDash(strings.Join(r.Permissions, ",")), r.State, r.Place}
		if cost {
			cells = append(cells, strconv.FormatFloat(r.US, 'f', 2, 64), strconv.FormatInt(r.Fuel, 10))
		}
		table = append(table, cells)
	}
	return table
}
