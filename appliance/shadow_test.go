package appliance_test

import (
	"strings"
	"testing"

	"ganglion/appliance"
	"ganglion/plugins/abi"
)

// A shadow changes no text, whatever it would do; what it would have chosen is counted.
func TestShadowsWatch(t *testing.T) {
	plain, _ := with(t, noise(), appliance.Config{})
	want := plain.complete(t, asking("one", 200))
	trap := coded("trap", abi.SlotBias, abi.HookPlan, func(f *frame) abi.Action { panic("it fails") })
	stop := coded("stop", abi.SlotText, abi.HookAccept, func(f *frame) abi.Action { return f.Stop(abi.StopContentFilter) })
	shadows := []appliance.PluginChoice{{Name: "no-e", At: "shadow"}, {Name: "trap", At: "shadow"}, {Name: "stop", At: "shadow"}, {Name: "none", At: "shadow"}}
	b, _ := with(t, noise(), appliance.Config{ShadowPlugins: shadows}, noE(), trap, stop)
	got := b.complete(t, asking("one", 200))
	if got.Text != want.Text || !strings.Contains(got.Text, "e") {
		t.Errorf("with shadows %q, without %q", got.Text, want.Text)
	}
	if len(got.Plugins) != 4 {
		t.Fatalf("reports %+v", got.Plugins)
	}
	for i, name := range []string{"none", "no-e", "trap", "stop"} {
		r := got.Plugins[i]
		switch {
		case r.Name != name:
			t.Errorf("report %d is of %s", i, r.Name)
		case name == "no-e" && (r.Outcome != "shadow" || r.Changed != strings.Count(got.Text, "e") || r.Calls != 200):
			t.Errorf("%+v; want one other token for each e in %q", r, got.Text)
		case name == "no-e":
			for i, c := range r.Choices {
				if got.Tokens[c.At].Text != "e" || c.Text == "e" || c.Text == "" || i > 0 && c.At <= r.Choices[i-1].At {
					t.Errorf("choice %+v in the place of %+v", c, got.Tokens[c.At])
				}
			}
			if len(r.Choices) != r.Changed {
				t.Errorf("%d choices, %d changed", len(r.Choices), r.Changed)
			}
		case name != "no-e" && (r.Outcome != "shadow ended" || r.Error == ""):
			t.Errorf("%+v", r)
		}
	}
}
