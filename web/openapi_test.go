package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"gopkg.in/yaml.v3"

	"ganglion/web/api"
)

// readings are a document read by two validators, which must agree.
type readings struct {
	name   string
	router routers.Router
	second validator.Validator
}

var ours = sync.OnceValues(func() (*readings, error) { return read("our document", api.Document()) })

// contract is the given document. It marks optional fields nullable, a word that
// OpenAPI 3.1 dropped, so that a strict reader refuses every null. It is read as it
// was meant.
var contract = sync.OnceValues(func() (*readings, error) {
	data, err := os.ReadFile("api/testdata/contract.yaml")
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	allowNull(tree)
	data, err = json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return read("the contract", data)
})

// allowNull turns nullable: true into the type null.
func allowNull(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			allowNull(e)
		}
		if v["nullable"] != true {
			return
		}
		delete(v, "nullable")
		switch t := v["type"].(type) {
		case string:
			v["type"] = []any{t, "null"}
		case []any:
			v["type"] = append(t, "null")
		}
		if one, ok := v["oneOf"].([]any); ok {
			v["oneOf"] = append(one, map[string]any{"type": "null"})
		}
	case []any:
		for _, e := range v {
			allowNull(e)
		}
	}
}

func read(name string, doc []byte) (*readings, error) {
	r := &readings{name: name}
	loaded, err := openapi3.NewLoader().LoadFromData(doc)
	if err != nil {
		return nil, err
	}
	if err := loaded.Validate(context.Background()); err != nil {
		return nil, err
	}
	loaded.Servers = nil // the router would look for the host
	if r.router, err = legacy.NewRouter(loaded); err != nil {
		return nil, err
	}
	second, err := libopenapi.NewDocument(doc)
	if err != nil {
		return nil, err
	}
	var errs []error
	if r.second, errs = validator.NewValidator(second); len(errs) > 0 {
		return nil, errs[0]
	}
	return r, nil
}

// request tells what is wrong with a request, by each reader.
func (d *readings) request(r *http.Request, body string) (first, second error) {
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		return err, err
	}
	clone := func() *http.Request {
		c := r.Clone(context.Background())
		c.Body = io.NopCloser(strings.NewReader(body))
		return c
	}
	first = openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{
		Request: clone(), PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
	if ok, errs := d.second.ValidateHttpRequestSync(clone()); !ok {
		second = errs[0]
		for _, e := range errs[0].SchemaValidationErrors {
			second = e
		}
	}
	return first, second
}

// response tells what is wrong with an answer, by each reader.
func (d *readings) response(r *http.Request, answer reply) (first, second error) {
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		return err, err
	}
	first = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 answer.status, Header: answer.header, Body: io.NopCloser(strings.NewReader(answer.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	ok, errs := d.second.ValidateHttpResponse(r, &http.Response{
		StatusCode: answer.status, Header: answer.header, Body: io.NopCloser(bytes.NewReader([]byte(answer.body))),
	})
	if !ok {
		second = errs[0]
		for _, e := range errs[0].SchemaValidationErrors {
			second = e
		}
	}
	return first, second
}

// checkExchange holds an answer against our document, and an answer to a request
// of the contract against the contract. Both readers must accept it.
func checkExchange(t *testing.T, r *http.Request, body string, answer reply) {
	t.Helper()
	doc, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := doc.router.FindRoute(r); err != nil || strings.HasPrefix(answer.header.Get("Content-Type"), "text/plain") {
		return // no JSON route
	}
	answers := []reply{answer}
	if answer.header.Get("Content-Type") == "text/event-stream" {
		answers = nil
		events := events200(t, answer)
		for i, data := range events {
			// The chunks between the first and the last are alike.
			if !strings.HasPrefix(data, `{"error"`) && (i < 2 || i >= len(events)-2) {
				answers = append(answers, reply{200, http.Header{"Content-Type": {"application/json"}}, data})
			}
		}
	}
	given, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	docs := []*readings{doc}
	if answer.status == 200 && r.URL.Path == "/v1/completions" {
		first, second := given.request(r, body)
		if first == nil && second == nil {
			docs = append(docs, given)
		}
		if first, second = doc.request(r, body); first != nil || second != nil {
			t.Errorf("a request was answered that our document refuses: %v / %v: %s", first, second, cut(body, 300))
		}
	}
	for _, d := range docs {
		for _, a := range answers {
			if first, second := d.response(r, a); first != nil || second != nil {
				t.Errorf("the answer does not fit %s: %v / %v: %s", d.name, first, second, cut(a.body, 500))
			}
		}
	}
}

// The check of exchanges can fail, and tells the right from the wrong.
func TestOpenAPIReadersAgree(t *testing.T) {
	doc, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	given, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	post := func() *http.Request {
		r, _ := http.NewRequest("POST", "http://127.0.0.1/v1/completions", nil)
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	const choice = `{"text":"a","index":0,"logprobs":null,"finish_reason":"stop"}`
	tests := []struct {
		name, answer string
		fits         bool
	}{
		{"whole", `{"id":"a","object":"completion","created":1,"model":"m","choices":[` + choice + `],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, true},
		{"wrong object", `{"id":"a","object":"text_completion","created":1,"model":"m","choices":[` + choice + `]}`, false},
		{"no choices", `{"id":"a","object":"completion","created":1,"model":"m"}`, false},
		{"float time", `{"id":"a","object":"completion","created":1.5,"model":"m","choices":[]}`, false},
		{"text of another type", `{"id":"a","object":"completion","created":1,"model":"m","choices":[{"text":5,"index":0,"logprobs":null,"finish_reason":null}]}`, false},
		{"logprobs of another type", `{"id":"a","object":"completion","created":1,"model":"m","choices":[{"text":"","index":0,"logprobs":["x"],"finish_reason":null}]}`, false},
	}
	for _, tt := range tests {
		for _, d := range []*readings{doc, given} {
			first, second := d.response(post(), reply{200, http.Header{"Content-Type": {"application/json"}}, tt.answer})
			if (first == nil) != tt.fits || (second == nil) != tt.fits {
				t.Errorf("%s, %s: %v / %v, want fits %v", tt.name, d.name, first, second, tt.fits)
			}
		}
	}
	requests := []struct {
		name, body     string
		ours, contract bool
	}{
		{"contract", `{"prompt":"a","stop":["x"],"logprobs":true,"temperature":null,"images":"aGk="}`, true, true},
		{"no prompt", `{"stop":["x"]}`, false, false},
		{"string for number", `{"prompt":"a","top_p":"1"}`, false, false},
		{"array prompt", `{"prompt":["a"]}`, true, false},
		{"string stop", `{"prompt":"a","stop":"x"}`, true, false},
		{"integer logprobs", `{"prompt":"a","logprobs":2}`, true, false},
		{"flat token prompt", `{"prompt":[1]}`, false, false},
	}
	for _, tt := range requests {
		for d, fits := range map[*readings]bool{doc: tt.ours, given: tt.contract} {
			first, second := d.request(post(), tt.body)
			if (first == nil) != fits || (second == nil) != fits {
				t.Errorf("%s, %s: %v / %v, want fits %v", tt.name, d.name, first, second, fits)
			}
		}
	}
}

// Every route of the table is in the document and the other way round.
func TestOpenAPIListsEveryRoute(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(api.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	b := start(t, setup{})
	n := 0
	for path, methods := range doc.Paths {
		for method := range methods {
			n++
			concrete := strings.NewReplacer("{id}", "x", "{name}", "x.gguf").Replace(path)
			h, _, _ := b.server.router.Lookup(strings.ToUpper(method), concrete)
			if h == nil {
				t.Errorf("%s %s is in the document and has no route", method, path)
			}
		}
	}
	if want := strings.Count(source(t, "routes.go"), "\t\t{\""); n != want {
		t.Errorf("the document has %d operations, the table of routes %d", n, want)
	}
}

func source(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOpenAPIIsServed(t *testing.T) {
	b := start(t, setup{})
	r := b.do("GET", "/openapi.json", "")
	if r.status != 200 || r.header.Get("Content-Type") != "application/json" || r.body != string(api.Document()) {
		t.Errorf("status %d, %s", r.status, cut(r.body, 100))
	}
}
