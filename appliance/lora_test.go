package appliance_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

// adapters returns a service over a model with three adapters; the first and the last
// act by default.
func adapters(t testing.TB) *bench {
	t.Helper()
	m := appliancetest.NewHashed(appliancetest.Options{Adapters: []string{"law", "poems", "code"}, Slots: 2})
	return serve(t, m, appliance.Config{LoRA: []appliance.LoRA{{Path: "x/law.gguf", Scale: 0.5}, {Path: "y/poems.gguf"}, {Path: "code.gguf", Scale: -2}}})
}

// by names an adapter.
func by(name string, scale float64) appliance.AdapterChoice {
	return appliance.AdapterChoice{Name: name, Scale: &scale}
}

// loraParams are the resolved adapters of a record.
func loraParams(r appliance.Record) (out []appliance.Param) {
	for _, p := range r.Params {
		if strings.HasPrefix(p.Name, "lora") {
			out = append(out, p)
		}
	}
	return out
}

func TestAdaptersAreResolved(t *testing.T) {
	b := adapters(t)
	one := int64(1)
	for _, tt := range []struct {
		name   string
		list   []appliance.AdapterChoice
		want   [3]float64
		origin appliance.Origin
	}{
		{"absent", nil, [3]float64{0.5, 0, -2}, appliance.FromConfig},
		{"none", []appliance.AdapterChoice{}, [3]float64{}, appliance.FromRequest},
		{"one", []appliance.AdapterChoice{by("poems", 3)}, [3]float64{0, 3, 0}, appliance.FromRequest},
		{"by number", []appliance.AdapterChoice{{ID: &one}}, [3]float64{0, 1, 0}, appliance.FromRequest},
		{"several", []appliance.AdapterChoice{by("code", 0), by("law", -1), {Name: "poems"}}, [3]float64{-1, 1, 0}, appliance.FromRequest},
	} {
		r := greedy("Once", 2)
		r.LoRA = tt.list
		b.complete(t, r)
		ended := b.log.Ended()
		got := loraParams(ended[len(ended)-1])
		want := []appliance.Param{
			{Name: `lora["law"]`, Value: tt.want[0], Origin: tt.origin},
			{Name: `lora["poems"]`, Value: tt.want[1], Origin: tt.origin},
			{Name: `lora["code"]`, Value: tt.want[2], Origin: tt.origin},
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, want)
		}
	}
}

func TestAdaptersAreRefused(t *testing.T) {
	b := adapters(t)
	id := func(n int64) appliance.AdapterChoice { return appliance.AdapterChoice{ID: &n} }
	for _, tt := range []struct {
		name        string
		list        []appliance.AdapterChoice
		param, says string
	}{
		{"unknown", []appliance.AdapterChoice{by("law", 1), by("tax", 1)}, "lora[1].name", `lora[1].name is "tax"; the adapters loaded are 0 "law", 1 "poems", 2 "code"`},
		{"unknown number", []appliance.AdapterChoice{id(3)}, "lora[0].id", `lora[0].id is 3; the adapters loaded are`},
		{"negative number", []appliance.AdapterChoice{id(-1)}, "lora[0].id", "is -1"},
		{"twice", []appliance.AdapterChoice{by("law", 1), id(0)}, "lora[1]", `"law" a second time`},
		{"too strong", []appliance.AdapterChoice{by("law", 101)}, "lora[0].scale", "is 101; it must be in [-100, 100]"},
		{"infinite", []appliance.AdapterChoice{by("law", math.Inf(-1))}, "lora[0].scale", "-Inf"},
		{"NaN", []appliance.AdapterChoice{by("law", math.NaN())}, "lora[0].scale", "NaN"},
		{"too many", make([]appliance.AdapterChoice, appliance.MaxAdapters+1), "lora", "17 entries; at most 16"},
	} {
		r := greedy("Once", 2)
		r.LoRA = tt.list
		_, err := b.try(t, r)
		var e *appliance.Error
		if !errors.As(err, &e) || e.Code != appliance.CodeInvalid || e.Param != tt.param || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: error %+v, want %s: %q", tt.name, err, tt.param, tt.says)
		}
	}
	if len(b.log.Begun()) != 0 {
		t.Error("a refused request left a record")
	}
	plain := serve(t, appliancetest.NewHashed(appliancetest.Options{}), appliance.Config{})
	r := greedy("Once", 2)
	r.LoRA = []appliance.AdapterChoice{by("law", 1)}
	if _, err := plain.try(t, r); err == nil || !strings.Contains(err.Error(), "no adapters are loaded") {
		t.Errorf("a model without adapters: error %v", err)
	}
	r.LoRA = []appliance.AdapterChoice{}
	if _, err := plain.try(t, r); err != nil {
		t.Errorf("no adapters of none: %v", err)
	}
}

// Each request gets its own adapters, whatever runs beside it and was in its slot
// before; prefixes are shared under the same adapters alone.
func TestAdaptersActOnTheirRequest(t *testing.T) {
	b := adapters(t)
	ask := func(list ...appliance.AdapterChoice) (string, int) {
		r := greedy("Once upon a time", 4)
		r.LoRA = append([]appliance.AdapterChoice{}, list...)
		a := b.complete(t, r)
		ended := b.log.Ended()
		return a.Text, ended[len(ended)-1].CachedTokens
	}
	plain, _ := ask()
	for _, tt := range []struct {
		name   string
		list   []appliance.AdapterChoice
		want   string
		cached bool
	}{
		{"law", []appliance.AdapterChoice{by("law", 90)}, "AAAA", false},
		{"law again", []appliance.AdapterChoice{by("law", 90)}, "AAAA", true},
		{"code is stronger", []appliance.AdapterChoice{by("law", 50), by("code", 90)}, "CCCC", false},
		{"none", nil, plain, false},
	} {
		got, cached := ask(tt.list...)
		if got != tt.want || (cached > 0) != tt.cached {
			t.Errorf("%s: %q with %d cached tokens, want %q, cached %v", tt.name, got, cached, tt.want, tt.cached)
		}
	}
	texts := make(chan string)
	wants := []string{"AAAA", "BBBB", "CCCC", plain}
	for i := range wants {
		go func() {
			r := greedy("Once upon a time", 4)
			r.LoRA = []appliance.AdapterChoice{}
			if i < 3 {
				n := int64(i)
				r.LoRA = append(r.LoRA, appliance.AdapterChoice{ID: &n, Scale: ptr(90.0)})
			}
			a, err := b.try(t, r)
			if err != nil {
				t.Error(err)
				texts <- ""
				return
			}
			texts <- a.Text
		}()
	}
	var got []string
	for range wants {
		got = append(got, <-texts)
	}
	slices.Sort(got)
	slices.Sort(wants)
	if !slices.Equal(got, wants) {
		t.Errorf("together: %q, want %q", got, wants)
	}
}

func TestServiceConfigRefusesAdapters(t *testing.T) {
	for _, tt := range []struct {
		list []appliance.LoRA
		says string
	}{
		{[]appliance.LoRA{{Path: "a.gguf", Scale: math.NaN()}}, "the scale NaN"},
		{[]appliance.LoRA{{Path: "a.gguf"}, {Path: "b/a.gguf"}}, `two adapters "a"`},
		{make([]appliance.LoRA, 17), "17 adapters"},
		{make([]appliance.LoRA, 1), "no file"},
	} {
		_, err := appliance.NewService(appliance.Config{LoRA: tt.list})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: error %v, want %q", tt.list, err, tt.says)
		}
	}
}
