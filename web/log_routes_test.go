package web

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/web/api"
)

// memoryLog is a log of the recorder's rows.
type memoryLog struct {
	r    *appliancetest.Recorder
	last appliance.RecordQuery
}

func (m *memoryLog) List(_ context.Context, q appliance.RecordQuery) ([]appliance.Record, string, error) {
	m.last = q
	rows := m.r.Ended()
	slices.Reverse(rows)
	return rows[:min(q.Limit, len(rows))], "next-id", nil
}

func (m *memoryLog) Get(_ context.Context, id string) (*appliance.Record, error) {
	for _, r := range m.r.Ended() {
		if r.ID == id {
			return &r, nil
		}
	}
	return nil, nil
}

func (m *memoryLog) MediaFile(_ context.Context, id string, place int) ([]byte, error) {
	for _, r := range m.r.Begun() { // files come with the beginning alone
		if r.ID == id && place >= 0 && place < len(r.Files) {
			return r.Files[place], nil
		}
	}
	return nil, nil
}

func (m *memoryLog) Status() api.LogStatus {
	return api.LogStatus{State: "ok", Dropped: 2, Path: "/log"}
}

func TestLogRoutes(t *testing.T) {
	log := &memoryLog{}
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{}), config: Config{Log: log}})
	log.r = b.recorder
	body := `{"prompt":"` + strings.Repeat("é", 300) + `","max_completion_tokens":3,"logprobs":true}`
	b.answer(body)
	r := b.do("GET", "/v1/log?limit=7&before=x&q=a%20b&outcome=length", "")
	list := parse[api.RecordList](t, r.body)
	if want := (appliance.RecordQuery{Limit: 7, Before: "x", Outcome: "length", Text: "a b"}); log.last != want {
		t.Errorf("query %+v, want %+v", log.last, want)
	}
	if len(list.Records) != 1 || list.Records[0].Prompt != strings.Repeat("é", 200) || *list.Next != "next-id" {
		t.Errorf("%s", r.body)
	}
	rec := parse[api.Record](t, b.do("GET", "/v1/log/"+list.Records[0].ID, "").body)
	if rec.Request != body || rec.Prompt != strings.Repeat("é", 300) || len(rec.Tokens) != 3 || rec.EndedAt == nil || len(rec.Params) == 0 || rec.Outcome != "length" {
		t.Errorf("%+v", rec)
	}
	wantError(t, b.do("GET", "/v1/log/none", ""), 404, "not_found", "")
	wantError(t, b.do("GET", "/v1/log?limit=0", ""), 400, "invalid_value", "limit")
	wantError(t, b.do("GET", "/v1/log?limit=501", ""), 400, "invalid_value", "limit")
	wantError(t, b.do("GET", "/v1/log?outcome=good", ""), 400, "invalid_value", "outcome")
	st := parse[api.Status](t, b.do("GET", "/v1/status", "").body)
	if st.State != "ready" || st.Model.Name != "hashed" || st.Log.Dropped != 2 || st.QueueMax == 0 {
		t.Errorf("%+v", st)
	}
	without := start(t, setup{})
	if r := without.do("GET", "/v1/log", ""); r.body != `{"records":[],"next":null}` {
		t.Errorf("%s", r.body)
	}
}
