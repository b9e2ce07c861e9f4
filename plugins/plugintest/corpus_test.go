package plugintest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
)

// The rows are the same on every machine and in every version: a report of a plugin says
// nothing without that.
func TestCorporaStayTheSame(t *testing.T) {
	for size := range corpora {
		h := sha256.New()
		row := make([]float32, size)
		for step := range 3 {
			for _, l := range Row(row, uint32(size), step) {
				var b [4]byte
				binary.LittleEndian.PutUint32(b[:], math.Float32bits(l))
				h.Write(b[:])
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)[:8]); got != corpora[size] {
			t.Errorf("%d tokens: %s, want %s", size, got, corpora[size])
		}
	}
}

var corpora = map[int]string{
	32000:  "e39578a20b4bbf01",
	128256: "59e1f196e1776cdc",
	151936: "6181da28a0537298",
	262144: "73dc1c2a42c3564c",
}

func TestVocabulary(t *testing.T) {
	v := NewVocabulary(4096)
	text := "ba shu 中国 été\n"
	if got := string(v.Decode(v.Encode([]byte(text), false, true))); got != text {
		t.Errorf("%q came back as %q", text, got)
	}
	if len(v.Encode(nil, false, false)) != 0 || !v.EOG(tokenEOS) || v.Bytes(tokenBOS) != nil {
		t.Error("control tokens")
	}
	if id, ok := v.Special(1); !ok || id != tokenEOS {
		t.Error("no EOS")
	}
	if _, ok := v.Special(9); ok {
		t.Error("a role that there is not")
	}
	seen := map[string]bool{}
	for id := int32(controls); id < 4096; id++ {
		if b := v.Bytes(id); len(b) == 0 {
			t.Fatalf("token %d is empty", id)
		} else if id < controls+256 == seen[string(b)] {
			continue
		} else {
			seen[string(b)] = true
		}
	}
}

func TestConfigurations(t *testing.T) {
	list := configsOf([]byte(`{"type":"object","required":["mode","name"],"properties":{
		"mode":{"enum":["a","b"]},"name":{"type":"string","minLength":10},
		"p":{"type":"number","minimum":0,"maximum":1,"default":0.5},"on":{"type":"boolean"},
		"words":{"type":"array","items":{"type":"string"}},"odd":{"type":["null","integer"]}}}`))
	for _, want := range []string{
		`{"mode":"a","name":"examplesss"}`, `{"mode":"b","name":"examplesss"}`, `{"mode":"a","name":"examplesss","p":0}`, `{"mode":"a","name":"examplesss","p":1}`,
		`{"mode":"a","name":"examplesss","on":true}`, `{"mode":"a","name":"examplesss","words":[]}`, `{"mode":"a","name":"examplesss","odd":null}`,
	} {
		found := false
		for _, c := range list {
			found = found || string(c.text) == want
			if !c.guessed {
				t.Errorf("%s is not marked as made up", c.text)
			}
		}
		if !found {
			t.Errorf("%s is not tried", want)
		}
	}
	if list := configsOf([]byte(`{"type":"object"}`)); len(list) != 1 || list[0].guessed {
		t.Errorf("a schema without properties: %v", list)
	}
}
