package split

import (
	"fmt"
	"reflect"

	"ganglion/gpu/ops"
)

// What an operation refers to is found by the types and names of its fields: the set of
// operations grows, and one that this package had to list by hand would be cut wrongly
// until somebody remembered. It runs when a model is loaded, never for a batch.

// The fields by which an operation names a part of its plan: an index, where it is an int.
const (
	cacheField = "Cache"
	stateField = "State"
	tableField = "Table"
)

var viewType = reflect.TypeFor[ops.View]()

// clone copies an operation with the views that view gives for its own.
func clone(op ops.Op, view func(ops.View) ops.View) (ops.Op, error) {
	from := reflect.ValueOf(op)
	if from.Kind() != reflect.Pointer || from.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("split: operation %s: %w", op.Name(), ops.ErrUnsupported)
	}
	to := reflect.New(from.Type().Elem())
	to.Elem().Set(from.Elem())
	for i := range to.Elem().NumField() {
		if f := to.Elem().Field(i); f.Type() == viewType {
			if v := f.Interface().(ops.View); v.Width > 0 { // 0: an operand that is left out
				f.Set(reflect.ValueOf(view(v)))
			}
		}
	}
	return to.Interface().(ops.Op), nil
}

// eachIndex replaces every index by which an operation names a cache, a state or a table.
func eachIndex(op ops.Op, replace func(field string, index int) int) {
	s := reflect.ValueOf(op).Elem()
	for _, name := range []string{cacheField, stateField, tableField} {
		if f := s.FieldByName(name); f.IsValid() && f.Kind() == reflect.Int {
			old := int(f.Int())
			if now := replace(name, old); now != old { // those who only look change nothing
				f.SetInt(int64(now))
			}
		}
	}
}
