package api

import (
	"encoding/json"
	"time"

	"ganglion/appliance"
)

// PluginList is the answer of GET /v1/plugins.
type PluginList struct {
	Plugins  []PluginItem     `json:"plugins"`  // by name, newest version first
	Rejected []RejectedPlugin `json:"rejected"` // files that are no plugin, or no update
	Loading  bool             `json:"loading"`  // the first look at all files is not over
	Upload   bool             `json:"upload"`   // whether files are taken
	Folder   string           `json:"folder"`
	Defaults []string         `json:"defaults"` // of requests that name none
	Required []string         `json:"required"` // of every request
	Shadow   []string         `json:"shadow"`   // that only watch
}

// PluginItem is one plugin.
type PluginItem struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	Hash         string          `json:"hash"` // SHA-256 of its module
	Place        string          `json:"place"`
	BuiltIn      bool            `json:"built_in"`
	Signature    string          `json:"signature"` // "built-in", "trusted", "unknown key", "unsigned"
	Key          string          `json:"key"`       // id of the key that signed it
	Slot         string          `json:"slot"`
	Permissions  []string        `json:"permissions"`
	OnError      string          `json:"on_error"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	License      string          `json:"license"`
	Homepage     string          `json:"homepage"`
	ConfigSchema json.RawMessage `json:"config_schema"` // JSON Schema
	LoadedAt     time.Time       `json:"loaded_at"`
	Update       string          `json:"update"` // why the latest file at its place was rejected
	Quarantine   *Quarantine     `json:"quarantine"`
	Cost         PluginCost      `json:"cost"`
}

// Quarantine is why a plugin is not given out.
type Quarantine struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// PluginCost is what a plugin did and cost since the server started.
type PluginCost struct {
	Requests      int64      `json:"requests"`
	Tokens        int64      `json:"tokens"`
	Changed       int64      `json:"tokens_changed"`
	MicrosPer     float64    `json:"us_per_token"`
	FuelPer       float64    `json:"fuel_per_token"`
	OnceUS        float64    `json:"once_us"` // of a request, outside of tokens
	OnceFuel      float64    `json:"once_fuel"`
	Failures      int64      `json:"failures"`
	LastError     string     `json:"last_error"`
	LastFailureAt *time.Time `json:"last_failure_at"`
}

// RejectedPlugin is a file that is not in use.
type RejectedPlugin struct {
	Place  string    `json:"place"`
	Hash   string    `json:"hash"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// PluginAdded is the answer of PUT /v1/plugins/files/{name}.
type PluginAdded struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Cleared is the answer of POST /v1/plugins/clear.
type Cleared struct {
	Cleared bool `json:"cleared"` // false: it was not quarantined
}

// DecodeClear reads the body of POST /v1/plugins/clear: the hash of a plugin.
func DecodeClear(body []byte) (string, error) { return decodeOne(body, "hash") }

// decodeOne reads a body of one text that must be there.
func decodeOne(body []byte, name string) (string, error) {
	d, err := open(body)
	if err != nil {
		return "", err
	}
	v, ok := d.field(name)
	if !ok {
		d.fail(appliance.CodeMissing, name, "is required")
		return "", d.err
	}
	text := d.text(name, v)
	return text, d.err
}
