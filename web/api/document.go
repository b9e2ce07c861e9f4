package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"gopkg.in/yaml.v3"
)

//go:embed openapi.yaml
var documentYAML []byte

// document converts once. The document is part of the binary, so a failure is a
// broken build, which the package's test finds.
var document = sync.OnceValue(func() []byte {
	var tree any
	if err := yaml.Unmarshal(documentYAML, &tree); err != nil {
		panic(fmt.Sprintf("api: openapi.yaml: %v", err))
	}
	b, err := json.Marshal(tree)
	if err != nil {
		panic(fmt.Sprintf("api: openapi.yaml: %v", err))
	}
	return b
})

// Document is our OpenAPI 3.1 document as JSON. It must not be changed. Safe for
// concurrent use.
func Document() []byte { return document() }
