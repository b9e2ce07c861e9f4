package api

import (
	"ganglion/appliance"
	"ganglion/appliance/jsontext"
	"ganglion/appliance/media"
)

// TokenizeRequest is the body of POST /v1/tokenize. Special and BOS are nil where
// the field is absent.
type TokenizeRequest struct {
	Text         string
	Special, BOS *bool
}

// DecodeTokenize reads the body of POST /v1/tokenize.
func DecodeTokenize(body []byte) (*TokenizeRequest, error) {
	d, err := open(body)
	if err != nil {
		return nil, err
	}
	r := &TokenizeRequest{}
	v, ok := d.field("text")
	if !ok {
		d.fail(appliance.CodeMissing, "text", "is required")
	} else {
		r.Text = d.text("text", v)
	}
	for name, p := range map[string]**bool{"special": &r.Special, "bos": &r.BOS} {
		if _, ok := d.field(name); ok {
			b := d.boolean(name)
			*p = &b
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

// DecodeMeasure reads the body of POST /v1/media/measure: a prompt, which may be left out,
// and its media.
func DecodeMeasure(body []byte, l media.Limits) (*appliance.Request, error) {
	d, err := open(body)
	if err != nil {
		return nil, err
	}
	r := &appliance.Request{}
	if v, ok := d.field("prompt"); ok {
		r.Prompt = d.text("prompt", v)
	}
	r.Media = d.media(l)
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

// DecodeDetokenize reads the body of POST /v1/detokenize.
func DecodeDetokenize(body []byte) ([]int32, error) {
	d, err := open(body)
	if err != nil {
		return nil, err
	}
	v, ok := d.field("tokens")
	if !ok {
		d.fail(appliance.CodeMissing, "tokens", "is required")
	} else if v.Kind() != jsontext.Array {
		d.wrong("tokens", "an array of token ids", v)
	}
	ids := d.tokens("tokens", v)
	if d.err != nil {
		return nil, d.err
	}
	return ids, nil
}

// DecodeLoad reads the body of POST /v1/models/load: the id of a model.
func DecodeLoad(body []byte) (string, error) { return decodeOne(body, "id") }
