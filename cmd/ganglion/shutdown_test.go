package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An answer that is not ready in a moment is cancelled and its client told; one that does not
// heed that is cut.
func TestShutdownTellsClients(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		cancelled, began, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(began)
			if heeds {
				<-cancelled
			} else {
				<-left
			}
			w.WriteHeader(499)
			io.WriteString(w, "cancelled")
		}))
		type answer struct {
			status int
			body   string
		}
		got := make(chan answer, 1)
		go func() {
			r, err := http.Get(server.URL)
			if err != nil {
				got <- answer{}
				return
			}
			defer r.Body.Close()
			b, _ := io.ReadAll(r.Body)
			got <- answer{r.StatusCode, string(b)}
		}()
		<-began
		start := time.Now()
		if err := shutdown(context.Background(), server.Config, 20*time.Millisecond, func() { close(cancelled) }); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); heeds && took > 2*time.Second { // after which clients are cut
			t.Errorf("it took %v", took)
		}
		want := answer{499, "cancelled"}
		if !heeds {
			want = answer{}
		}
		if a := <-got; a != want {
			t.Errorf("heeds %v: the client got %+v, want %+v", heeds, a, want)
		}
		close(left)
		server.Close()
	}
}
