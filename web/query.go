package web

import (
	"net/http"
	"net/url"
	"strconv"

	"ganglion/appliance"
)

// queryOf reads the query of a request. As in a body, a name that the route knows
// may stand there once: of two values one would be dropped without a word. Other
// names have no effect.
func queryOf(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, appliance.Errorf(appliance.CodeInvalid, "", "the query of the address cannot be read")
	}
	for _, name := range known {
		if len(q[name]) > 1 {
			return nil, appliance.Errorf(appliance.CodeDuplicateKey, name, "%s is given %d times", name, len(q[name]))
		}
	}
	return q, nil
}

// count reads a number from 1 to most; absent it is normal.
func count(q url.Values, name string, normal, most int) (int, error) {
	if !q.Has(name) {
		return normal, nil
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < 1 || n > most {
		return 0, appliance.Errorf(appliance.CodeInvalid, name, "%s must be an integer from 1 to %d", name, most)
	}
	return n, nil
}
