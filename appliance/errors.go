package appliance

import (
	"fmt"
	"time"
)

// Code names a kind of failure; web maps it to a status, cmd to an exit code.
type Code string

// The codes users may meet.
const (
	CodeInvalid         Code = "invalid_value"
	CodeInvalidType     Code = "invalid_type"
	CodeInvalidJSON     Code = "invalid_json"
	CodeInvalidUTF8     Code = "invalid_utf8"
	CodeDuplicateKey    Code = "duplicate_key"
	CodeMissing         Code = "missing_parameter"
	CodeEmptyPrompt     Code = "empty_prompt"
	CodeContextLength   Code = "context_length_exceeded"
	CodeModality        Code = "modality_not_supported" // the model has no encoder for the kind
	CodeMediaCount      Code = "media_count_mismatch"   // markers in the prompt and items
	CodeMediaType       Code = "unsupported_media_type" // a kind of file that is not read
	CodeMediaDecode     Code = "media_decode_failed"    // a file that its headers promised
	CodeMediaTimeout    Code = "media_timeout"          // a file that takes too long to decode
	CodeMediaTooLarge   Code = "media_too_large"
	CodeImageTooLarge   Code = "image_too_large"
	CodeBodyTooLarge    Code = "body_too_large"
	CodeNotFound        Code = "not_found"
	CodeMethod          Code = "method_not_allowed"
	CodeForbiddenHost   Code = "forbidden_host"
	CodeForbiddenOrigin Code = "forbidden_origin"
	CodeForbiddenCode   Code = "forbidden_code" // a request brings code, which the operator does not allow
	CodeUnauthorized    Code = "invalid_api_key"
	CodeQueueFull       Code = "queue_full"
	CodeNoModel         Code = "no_model"
	CodeLoading         Code = "model_loading"
	CodeModelFile       Code = "invalid_model_file"
	CodeOutOfMemory     Code = "out_of_memory"
	CodeCancelled       Code = "cancelled"
	CodeShutdown        Code = "shutting_down"
	CodeInternal        Code = "internal_error"
	CodePluginFile      Code = "invalid_plugin_file"
	CodeExists          Code = "already_exists"    // a file would take the place of another one
	CodePlugin          Code = "plugin_error"      // a plugin failed: see Error.Plugin
	CodeRefused         Code = "refused_by_plugin" // a plugin does not want the request
)

// Error is a failure that may be shown to the user as it is. Anything else is
// internal: it is logged with the request id and shown as CodeInternal.
type Error struct {
	Code    Code
	Message string
	Param   string // the field at fault, such as "stop[1]"; may be empty
	// RetryAfter tells when to try again, for the codes that mean "not now"
	// (CodeQueueFull, CodeLoading); 0 = unknown.
	RetryAfter time.Duration
	Plugin     *PluginFault // with CodePlugin
	// Reports are what the plugins of a request did that failed behind its start, whatever
	// it failed with; nil: it had none.
	Reports []PluginReport
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error about a field.
func Errorf(code Code, param, format string, args ...any) *Error {
	return &Error{Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}
