package api

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/media"
)

func decode(t *testing.T, body string) *CompletionRequest {
	t.Helper()
	r, err := DecodeCompletion([]byte(body), media.DefaultLimits())
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

func TestDecodeCompletion(t *testing.T) {
	r := decode(t, ` {"prompt":"a\u0000b","temperature":0.5,"top_p":1,"top_k":40.0,"min_p":0.1,"seed":-3,"stop":["x","y"],"stream":true,
		"presence_penalty":-2,"frequency_penalty":2e0,"logit_bias":{"5":-100,"-1":1},"logprobs":true,"top_logprobs":3,"max_completion_tokens":8e0,
		"stream_options":{"include_usage":true,"x":1},"n":2} `)
	p := r.Params
	if r.Prompts[0].Text != "a\x00b" || *p.Temperature != 0.5 || *p.TopP != 1 || *p.TopK != 40 || *p.MinP != 0.1 || *p.Seed != -3 ||
		!slices.Equal(p.Stop, []string{"x", "y"}) || !p.Stream || *p.PresencePenalty != -2 || *p.FrequencyPenalty != 2 ||
		!slices.Equal(p.LogitBias, []appliance.Bias{{Key: "5", ID: 5, Value: -100}, {Key: "-1", ID: -1, Value: 1}}) ||
		r.Logprobs != LogprobNumbers || !p.Logprobs || p.TopLogprobs != 3 || *p.MaxTokens != 8 || !r.IncludeUsage || r.N != 2 {
		t.Errorf("%+v %+v", r, p)
	}
	r = decode(t, `{"prompt":["a",[1,2.0]],"max_tokens":5,"stop":"x","logprobs":2}`)
	if len(r.Prompts) != 2 || r.Prompts[0].Text != "a" || !slices.Equal(r.Prompts[1].Tokens, []int32{1, 2}) ||
		*r.Params.MaxTokens != 5 || !r.MaxAlias || r.Params.Stop[0] != "x" || r.Logprobs != LogprobObject || r.Params.TopLogprobs != 2 {
		t.Errorf("%+v", r)
	}
	r = decode(t, `{"prompt":"a","max_tokens":5,"max_completion_tokens":6}`)
	if *r.Params.MaxTokens != 6 || r.MaxAlias {
		t.Errorf("%+v: the contract's field wins", r)
	}
	r = decode(t, `{"prompt":"a","max_tokens":5,"max_completion_tokens":null}`)
	if *r.Params.MaxTokens != 5 || !r.MaxAlias {
		t.Errorf("%+v", r)
	}
}

func TestDecodeAdapters(t *testing.T) {
	if r := decode(t, `{"prompt":"a"}`); r.Params.LoRA != nil {
		t.Errorf("absent: %+v", r.Params.LoRA)
	}
	if r := decode(t, `{"prompt":"a","lora":null}`); r.Params.LoRA != nil {
		t.Errorf("null: %+v", r.Params.LoRA)
	}
	if r := decode(t, `{"prompt":"a","lora":[]}`); r.Params.LoRA == nil || len(r.Params.LoRA) != 0 {
		t.Errorf("empty: %+v, want a list that is there", r.Params.LoRA)
	}
	l := decode(t, `{"prompt":"a","lora":[{"name":"x","scale":-0.5,"y":1},{"id":2.0,"scale":null,"name":null}]}`).Params.LoRA
	if len(l) != 2 || l[0].Name != "x" || l[0].ID != nil || *l[0].Scale != -0.5 || *l[1].ID != 2 || l[1].Scale != nil {
		t.Errorf("%+v", l)
	}
}

func TestDecodeCompletionRefuses(t *testing.T) {
	tests := []struct {
		body, param string
		code        appliance.Code
	}{
		{`{"prompt":1}`, "prompt", appliance.CodeInvalidType},
		{`{"prompt":[1]}`, "prompt[0]", appliance.CodeInvalidType},
		{`{"prompt":[[1,"x"]]}`, "prompt[0][1]", appliance.CodeInvalidType},
		{`{"prompt":[[-1]]}`, "prompt[0][0]", appliance.CodeInvalid},
		{`{"prompt":[[2147483648]]}`, "prompt[0][0]", appliance.CodeInvalid},
		{`{"prompt":["a",null]}`, "prompt[1]", appliance.CodeInvalidType},
		{`{"prompt":[]}`, "prompt", appliance.CodeMissing},
		{`{"prompt":"\ud800"}`, "prompt", appliance.CodeInvalidUTF8},
		{`{"prompt":"a","stop":["\udc00"]}`, "stop[0]", appliance.CodeInvalidUTF8},
		{`{"prompt":"a","stop":["a",1]}`, "stop[1]", appliance.CodeInvalidType},
		{`{"prompt":"a","stop":{}}`, "stop", appliance.CodeInvalidType},
		{`{"prompt":"a","stream":1}`, "stream", appliance.CodeInvalidType},
		{`{"prompt":"a","stream":"true"}`, "stream", appliance.CodeInvalidType},
		{`{"prompt":"a","temperature":1e999}`, "temperature", appliance.CodeInvalid},
		{`{"prompt":"a","top_p":true}`, "top_p", appliance.CodeInvalidType},
		{`{"prompt":"a","top_k":1e30}`, "top_k", appliance.CodeInvalid},
		{`{"prompt":"a","logprobs":"yes"}`, "logprobs", appliance.CodeInvalidType},
		{`{"prompt":"a","logprobs":21}`, "logprobs", appliance.CodeInvalid},
		{`{"prompt":"a","logprobs":1.5}`, "logprobs", appliance.CodeInvalidType},
		{`{"prompt":"a","top_logprobs":-1}`, "top_logprobs", appliance.CodeInvalid},
		{`{"prompt":"a","logit_bias":[]}`, "logit_bias", appliance.CodeInvalidType},
		{`{"prompt":"a","logit_bias":{"1":null}}`, `logit_bias["1"]`, appliance.CodeInvalidType},
		{`{"prompt":"a","logit_bias":{"1":1e999}}`, `logit_bias["1"]`, appliance.CodeInvalid},
		{`{"prompt":"a","logit_bias":{"01":1}}`, `logit_bias["01"]`, appliance.CodeInvalid},
		{`{"prompt":"a","logit_bias":{"x":1}}`, "logit_bias", appliance.CodeInvalid},
		{`{"prompt":"a","logit_bias":{"":1}}`, "logit_bias", appliance.CodeInvalid},
		{`{"prompt":"a","logit_bias":{"99999999999999999999":1}}`, `logit_bias["99999999999999999999"]`, appliance.CodeInvalid},
		{`{"prompt":"a","logit_bias":{"1":1,"1":2}}`, "", appliance.CodeDuplicateKey},
		{`{"prompt":"a","prompt":"b"}`, "prompt", appliance.CodeDuplicateKey},
		{`{"prompt":"a","stream_options":[]}`, "stream_options", appliance.CodeInvalidType},
		{`{"prompt":"a","stream_options":{"include_usage":1}}`, "stream_options.include_usage", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":{}}`, "lora", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":"x"}`, "lora", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":["x"]}`, "lora[0]", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":[{"id":0},{}]}`, "lora[1]", appliance.CodeMissing},
		{`{"prompt":"a","lora":[{"scale":1}]}`, "lora[0]", appliance.CodeMissing},
		{`{"prompt":"a","lora":[{"name":null}]}`, "lora[0]", appliance.CodeMissing},
		{`{"prompt":"a","lora":[{"name":"x","id":0}]}`, "lora[0]", appliance.CodeInvalid},
		{`{"prompt":"a","lora":[{"name":1}]}`, "lora[0].name", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":[{"name":"\ud800"}]}`, "lora[0].name", appliance.CodeInvalidUTF8},
		{`{"prompt":"a","lora":[{"id":"x"}]}`, "lora[0].id", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":[{"id":1.5}]}`, "lora[0].id", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":[{"id":-1}]}`, "lora[0].id", appliance.CodeInvalid},
		{`{"prompt":"a","lora":[{"id":1e30}]}`, "lora[0].id", appliance.CodeInvalid},
		{`{"prompt":"a","lora":[{"id":0,"scale":true}]}`, "lora[0].scale", appliance.CodeInvalidType},
		{`{"prompt":"a","lora":[{"id":0,"scale":1e999}]}`, "lora[0].scale", appliance.CodeInvalid},
		{`{"prompt":"a","lora":[` + strings.Repeat(`{"id":0},`, 16) + `{"id":0}]}`, "lora", appliance.CodeInvalid},
		{`{"prompt":"a","images":5}`, "images", appliance.CodeInvalidType},
		{`{"prompt":"a","images":["aGVsbG8="]}`, "images[0]", media.CodeUnknownType},
	}
	for _, tt := range tests {
		_, err := DecodeCompletion([]byte(tt.body), media.DefaultLimits())
		var e *appliance.Error
		if !errors.As(err, &e) || e.Code != tt.code || e.Param != tt.param || !strings.Contains(e.Message, tt.param) {
			t.Errorf("%s: %+v, want %s about %s", tt.body, err, tt.code, tt.param)
		}
	}
}

func TestChoicesKeepTheirOrder(t *testing.T) {
	r := decode(t, `{"prompt":["a","b"],"n":2,"seed":9223372036854775807}`)
	for i, want := range []string{"a", "a", "b", "b"} {
		c := r.Choice(i)
		if c.Prompt != want || i%2 == 0 && *c.Seed != 9223372036854775807 || i%2 == 1 && *c.Seed != -9223372036854775808 {
			t.Errorf("choice %d: %q, seed %d", i, c.Prompt, *c.Seed)
		}
	}
}

func TestOtherBodies(t *testing.T) {
	r, err := DecodeTokenize([]byte(`{"text":"a","special":false}`))
	if err != nil || r.Text != "a" || *r.Special || r.BOS != nil {
		t.Errorf("%+v, %v", r, err)
	}
	ids, err := DecodeDetokenize([]byte(`{"tokens":[1,2.0,3e0]}`))
	if err != nil || !slices.Equal(ids, []int32{1, 2, 3}) {
		t.Errorf("%v, %v", ids, err)
	}
	id, err := DecodeLoad([]byte(`{"id":"x"}`))
	if err != nil || id != "x" {
		t.Errorf("%q, %v", id, err)
	}
	for _, body := range []string{``, `[]`, `{}`, `{"text":1,"tokens":1,"id":1}`, `{"text":null,"tokens":null,"id":null}`, `{"tokens":[1.5],"text":"\ud800","id":"\ud800"}`, `{"tokens":["1"],"text":[],"id":[]}`} {
		if _, err := DecodeTokenize([]byte(body)); err == nil {
			t.Errorf("tokenize takes %s", body)
		}
		if _, err := DecodeDetokenize([]byte(body)); err == nil {
			t.Errorf("detokenize takes %s", body)
		}
		if _, err := DecodeLoad([]byte(body)); err == nil {
			t.Errorf("load takes %s", body)
		}
	}
}

// FuzzRequest checks that any body gives a request that holds together or an error
// that fits on the wire.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"a","temperature":0.5,"top_k":40.0,"stop":["x"],"logit_bias":{"5":-100},"logprobs":2,"stream_options":{"include_usage":true}}`,
		`{"prompt":["a",[1,2]],"n":2,"max_tokens":5}`,
		`{"prompt":"a","images":["data:image/png;base64,iVBORw0KGgo="],"audios":[[82,73,70,70]],"videos":{"frames":[{"b64_json":"R0lGODlhAQABAAAAADs="}],"fps":1}}`,
		`{"prompt":"a","images":[{"image_url":{"url":"https://x"}},{"inline_data":{"data":"_-+/"}}]}`,
		`{"prompt":"a","images":{"data":[1,2,3],"format":"rgb8","width":1,"height":1}}`,
		`{"prompt":"a","max_completion_tokens":1e99,"seed":9223372036854775807,"top_p":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		r, err := DecodeCompletion(body, media.DefaultLimits())
		if !bytes.Equal(before, body) {
			t.Error("the body was changed")
		}
		if err != nil {
			var e *appliance.Error
			if !errors.As(err, &e) || e.Code == "" || e.Message == "" || len(e.Message) > 512 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if n := r.Choices(); n < 1 || n > MaxChoices {
			t.Fatalf("%d choices", n)
		}
		for i := range r.Choices() {
			c := r.Choice(i)
			for _, m := range c.Media {
				if m.Param == "" || m.MIME == "" || len(m.Data) == 0 && len(m.Frames) == 0 {
					t.Errorf("media %+v", m)
				}
			}
			for _, s := range c.Stop {
				if s == "" {
					t.Error("an empty stop")
				}
			}
		}
	})
}

// The note for the log stands in the place of the media, whatever else has the same text.
func TestBodyWithoutMedia(t *testing.T) {
	const pixel = `"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="`
	for _, tt := range []struct{ body, want string }{
		{` {"prompt":` + pixel + `,"images":` + pixel + `, "n":1} `, ` {"prompt":` + pixel + `,"images":"94 bytes, left out of the log", "n":1} `},
		{`{"videos":[],"images":[` + pixel + `],"audios":null,"prompt":"a"}`, `{"videos":[],"images":"96 bytes, left out of the log","audios":null,"prompt":"a"}`},
		{`{"prompt":"a"}`, `{"prompt":"a"}`},
	} {
		if got := string(decode(t, tt.body).Params.Body); got != tt.want {
			t.Errorf("%s\nis kept as %s\nwant %s", tt.body, got, tt.want)
		}
	}
}

// Media are read a few bodies at once; text does not wait for them.
func TestMediaAreReadAFewAtOnce(t *testing.T) {
	for range cap(reading) {
		reading <- struct{}{}
	}
	decode(t, `{"prompt":"a","images":null}`)
	read := make(chan error, 1)
	go func() {
		_, err := DecodeCompletion([]byte(`{"prompt":"a","images":["AAAA"]}`), media.DefaultLimits())
		read <- err
	}()
	select {
	case <-read:
		t.Error("one more was read than there are places")
	case <-time.After(50 * time.Millisecond):
	}
	for range cap(reading) {
		<-reading
	}
	if err := <-read; err == nil || len(reading) != 0 {
		t.Errorf("read with %v, %d places are taken", err, len(reading))
	}
}
