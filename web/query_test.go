package web

import "testing"

func TestQueryNamesStandOnce(t *testing.T) {
	b := start(t, scripted("x"))
	for _, c := range []struct {
		path   string
		status int
		code   string
		param  string
	}{
		{"/v1/log?limit=5", 200, "", ""},
		{"/v1/log?limit=", 400, "invalid_value", "limit"},
		{"/v1/log?outcome=", 200, "", ""},
		{"/v1/log?other=1&other=2", 200, "", ""},
		{"/v1/log?limit=5&limit=5", 400, "duplicate_key", "limit"},
		{"/v1/log?limit=&limit=x", 400, "duplicate_key", "limit"},
		{"/v1/log?outcome=stop&outcome=length", 400, "duplicate_key", "outcome"},
		{"/v1/log?q=a&q=b", 400, "duplicate_key", "q"},
		{"/v1/log?before=a&before=b", 400, "duplicate_key", "before"},
		{"/v1/log?limit=%zz", 400, "invalid_value", ""},
		{"/v1/log?q=a;limit=5", 400, "invalid_value", ""},
		{"/v1/tokens?contains=a&limit=5", 200, "", ""},
		{"/v1/tokens?contains=a&contains=b", 400, "duplicate_key", "contains"},
		{"/v1/tokens?contains=a&limit=1&limit=2", 400, "duplicate_key", "limit"},
	} {
		r := b.uncheckedGet(c.path)
		if c.status != 200 {
			wantError(t, r, c.status, c.code, c.param)
		} else if r.status != 200 {
			t.Errorf("%s: %d %s", c.path, r.status, r.body)
		}
	}
}
