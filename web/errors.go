package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"ganglion/appliance"
	"ganglion/appliance/media"
	"ganglion/web/api"
)

// Codes of this package's own.
const (
	codeTimeout  appliance.Code = "request_timeout"      // the client stopped sending
	codeEncoding appliance.Code = "unsupported_encoding" // a compressed body
	codeDisk     appliance.Code = "insufficient_storage" // an upload does not fit
)

// failure is how a code looks on the wire.
type failure struct {
	status int
	// retryAfter is the seconds of Retry-After, 0 for none. A 5xx without it says
	// x-should-retry: false, since client libraries retry every 5xx unasked.
	retryAfter int
}

// failures is the one table from code to status.
var failures = map[appliance.Code]failure{
	appliance.CodeInvalid:         {status: http.StatusBadRequest},
	appliance.CodeInvalidType:     {status: http.StatusBadRequest},
	appliance.CodeInvalidJSON:     {status: http.StatusBadRequest},
	appliance.CodeInvalidUTF8:     {status: http.StatusBadRequest},
	appliance.CodeDuplicateKey:    {status: http.StatusBadRequest},
	appliance.CodeMissing:         {status: http.StatusBadRequest},
	appliance.CodeEmptyPrompt:     {status: http.StatusBadRequest},
	appliance.CodeContextLength:   {status: http.StatusBadRequest},
	appliance.CodeModality:        {status: http.StatusBadRequest},
	appliance.CodeMediaCount:      {status: http.StatusBadRequest},
	appliance.CodeMediaDecode:     {status: http.StatusBadRequest},
	appliance.CodeMediaTimeout:    {status: http.StatusRequestTimeout},
	appliance.CodeImageTooLarge:   {status: http.StatusBadRequest},
	appliance.CodeModelFile:       {status: http.StatusBadRequest},
	media.CodeBroken:              {status: http.StatusBadRequest},
	media.CodeWrongModality:       {status: http.StatusBadRequest},
	media.CodeUnknownType:         {status: http.StatusUnsupportedMediaType},
	media.CodeRemote:              {status: http.StatusBadRequest},
	media.CodeLocal:               {status: http.StatusBadRequest},
	appliance.CodeUnauthorized:    {status: http.StatusUnauthorized},
	appliance.CodeForbiddenHost:   {status: http.StatusForbidden},
	appliance.CodeForbiddenOrigin: {status: http.StatusForbidden},
	appliance.CodeForbiddenCode:   {status: http.StatusForbidden},
	appliance.CodeNotFound:        {status: http.StatusNotFound},
	appliance.CodeMethod:          {status: http.StatusMethodNotAllowed},
	codeTimeout:                   {status: http.StatusRequestTimeout},
	appliance.CodeExists:          {status: http.StatusConflict},
	appliance.CodePluginFile:      {status: http.StatusBadRequest},
	appliance.CodeBodyTooLarge:    {status: http.StatusRequestEntityTooLarge},
	appliance.CodeMediaTooLarge:   {status: http.StatusRequestEntityTooLarge},
	codeEncoding:                  {status: http.StatusUnsupportedMediaType},
	appliance.CodeCancelled:       {status: 499}, // nginx's number for a client that left
	appliance.CodeInternal:        {status: http.StatusInternalServerError},
	appliance.CodePlugin:          {status: http.StatusInternalServerError},
	appliance.CodeRefused:         {status: http.StatusBadRequest},
	appliance.CodeQueueFull:       {status: http.StatusServiceUnavailable, retryAfter: 1},
	appliance.CodeLoading:         {status: http.StatusServiceUnavailable, retryAfter: 1},
	appliance.CodeNoModel:         {status: http.StatusServiceUnavailable, retryAfter: 5},
	appliance.CodeShutdown:        {status: http.StatusServiceUnavailable, retryAfter: 5},
	appliance.CodeOutOfMemory:     {status: http.StatusServiceUnavailable},
	codeDisk:                      {status: http.StatusInsufficientStorage},
}

// errorType is the type of an error object.
func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// shown is the error that a client sees: an *appliance.Error as it is, anything
// else as an internal one, which is logged here.
func (s *Server) shown(err error, id string) *appliance.Error {
	var e *appliance.Error
	if errors.As(err, &e) {
		if _, ok := failures[e.Code]; ok {
			return e
		}
	}
	if errors.Is(err, context.Canceled) { // the client is gone: no fault of the server
		return &appliance.Error{Code: appliance.CodeCancelled, Message: "the request was cancelled"}
	}
	s.cfg.Logger.Error("request failed", slog.String("request_id", id), slog.Any("error", err))
	return &appliance.Error{Code: appliance.CodeInternal, Message: "internal error"}
}

// maxErrorBody bounds the body of an error.
const maxErrorBody = 2 << 10

// errorBody encodes an error in at most maxErrorBody bytes.
func errorBody(e *appliance.Error) []byte {
	code := string(e.Code)
	body := api.ErrorBody{Error: api.Error{
		Message: cut(e.Message, 1024), Type: errorType(failures[e.Code].status), Code: &code,
	}}
	if f := e.Plugin; f != nil {
		if e.Code == appliance.CodePlugin { // else it refused, which is the request's fault
			body.Error.Type, body.Error.Code = string(appliance.CodePlugin), &f.Code
		}
		body.Error.Plugin, body.Error.Version, body.Error.Step = f.Plugin, f.Version, &f.Step
	}
	if e.Param != "" {
		param := cut(e.Param, 128)
		body.Error.Param = &param
	}
	for {
		b := encode(body)
		if len(b) <= maxErrorBody {
			return b
		}
		body.Error.Message = cut(body.Error.Message, len(body.Error.Message)/2)
	}
}

// cut shortens a text to n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// encode is JSON without HTML escapes: text on the wire reads as it is.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// The wire types hold nothing that cannot be encoded: floats are made finite
		// where they are set.
		return []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"internal_error"}}`)
	}
	return b.Bytes()[:b.Len()-1]
}

// refuse answers with an error.
func (s *Server) refuse(w *response, err error) {
	e := s.shown(err, w.id)
	if w.status != 0 {
		return // too late: the answer has begun
	}
	f := failures[e.Code]
	h := w.Header()
	switch {
	case e.RetryAfter > 0:
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	case f.retryAfter > 0:
		h.Set("Retry-After", strconv.Itoa(f.retryAfter))
	case f.status >= 500:
		h.Set("X-Should-Retry", "false")
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="ganglion"`)
	}
	w.json(f.status, errorBody(e))
}
