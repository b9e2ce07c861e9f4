package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDetectWatermark: an answer that was made with green-list is known by it, from the log
// and from its text, by who has the key; other answers and other keys are not.
func TestDetectWatermark(t *testing.T) {
	home := t.TempDir()
	p := serveTiny(t, home)
	answer := func(plugins string) (id, file string) {
		t.Helper()
		code, body := p.completeLoaded(fmt.Sprintf(`{"prompt":"abc","max_tokens":200,"temperature":1,"seed":5,"plugins":[%s]}`, plugins))
		var a struct {
			ID      string
			Choices []struct{ Text string }
		}
		if err := json.Unmarshal([]byte(body), &a); code != 200 || err != nil {
			t.Fatalf("%d: %s", code, body)
		}
		file = filepath.Join(home, a.ID+".txt")
		if err := os.WriteFile(file, []byte(a.Choices[0].Text), 0o600); err != nil {
			t.Fatal(err)
		}
		return a.ID, file
	}
	marked, markedText := answer(`{"name":"green-list","config":{"key":"secret","gamma":0.25,"delta":6,"window":2}}`)
	plain, plainText := answer("")
	p.stop()
	keyFile := filepath.Join(home, "key")
	if err := os.WriteFile(keyFile, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	detect := func(args ...string) (rows []detected) {
		t.Helper()
		cmd := exec.Command(binaryPath(t), append([]string{"plugin", "detect", "--json", "--model", tinyPath(t), "--data", filepath.Join(home, "data"), "--gamma", "0.25", "--window", "2"}, args...)...)
		cmd.Env = cleanEnv(home)
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &rows)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return rows
	}
	for name, c := range map[string]struct {
		args []string
		want string // of each text
	}{
		"log":          {[]string{"--key", "secret", "--id", marked}, "yes"},
		"key file":     {[]string{"--key-file", keyFile, "--id", marked}, "yes"},
		"text":         {[]string{"--key", "secret", markedText}, "yes"},
		"plain":        {[]string{"--key", "secret", "--id", plain}, "no"},
		"plain text":   {[]string{"--key", "secret", plainText}, "no"},
		"other key":    {[]string{"--key", "Secret", "--id", marked}, "no"},
		"other window": {[]string{"--key", "secret", "--window", "1", "--id", marked}, "no"},
		"several":      {[]string{"--key", "secret", "--id", marked, "--id", plain, plainText}, "no yes no yes"},
	} {
		var got []string
		rows := detect(c.args...)
		for _, r := range rows {
			word := "no"
			if r.Found {
				word = "yes"
			}
			got = append(got, word)
			if r.Found != (r.P < 1e-4) || r.Tokens == 0 || r.Share < 0 || r.Share > 1 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %+v, want %s", name, rows, c.want)
		}
	}
	for name, args := range map[string][]string{
		"the key of the watermark is needed": {plainText},
		"--gamma 2":                          {"--key", "k", "--gamma", "2", plainText},
		"--window 9":                         {"--key", "k", "--window", "9", plainText},
		"there is no file":                   {"--key", "k", plainText + "x"},
		"no request":                         {"--key", "k", "--id", "nobody"},
	} {
		cmd := exec.Command(binaryPath(t), append([]string{"plugin", "detect", "--model", tinyPath(t), "--data", filepath.Join(home, "data")}, args...)...)
		cmd.Env = cleanEnv(home)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), name) {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}
