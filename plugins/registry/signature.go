package registry

import (
	"errors"
	"fmt"

	"ganglion/plugins/sign"
)

// Policy says which files may be loaded. A signature that does not belong to its file is
// refused under every policy.
type Policy string

// The policies.
const (
	UnsignedOK Policy = "unsigned-ok"
	Warn       Policy = "warn"    // without a trusted signature: a warning in the log
	Require    Policy = "require" // without one: refused
)

// Signature is what is known of who made a file.
type Signature string

// The states of a signature.
const (
	SignedTrusted Signature = "trusted"
	SignedUnknown Signature = "unknown key"
	Unsigned      Signature = "unsigned"
	BuiltIn       Signature = "built-in" // part of the binary
)

// signature checks a file against the policy.
func (r *Registry) signature(file []byte) (s Signature, key string, err error) {
	key, err = r.o.Keys.Verify(file)
	switch {
	case err == nil:
		return SignedTrusted, key, nil
	case errors.Is(err, sign.ErrUnsigned):
		s = Unsigned
	case errors.Is(err, sign.ErrUnknown):
		s = SignedUnknown
		if claim, e := sign.Read(file); e == nil {
			key = claim.Key
		}
	default:
		return "", "", err
	}
	if r.o.Policy == Require {
		return s, key, fmt.Errorf("registry: a trusted signature is required: %w", err)
	}
	return s, key, nil
}
