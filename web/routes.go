package web

import (
	"net/http"
	"sort"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
)

// access says who may call a route.
type access int

const (
	open       access = iota // anybody who may connect
	caller                   // who has the key, when there is one
	management               // who has the key or the session token, when there is one
)

// handler answers a request or returns why it does not.
type handler func(w *response, r *http.Request, p httprouter.Params) error

// routes is the table of the surface.
func (s *Server) routes() *httprouter.Router {
	table := []struct {
		method, path string
		access       access
		handle       handler
	}{
		{"POST", "/v1/completions", caller, s.completions},
		{"GET", "/v1/models", caller, s.models},
		{"POST", "/v1/tokenize", caller, s.tokenize},
		{"POST", "/v1/detokenize", caller, s.detokenize},
		{"GET", "/v1/tokens", caller, s.searchTokens},
		{"POST", "/v1/media/measure", caller, s.measureMedia},
		{"GET", "/metrics", caller, s.metricsPage},
		{"GET", "/openapi.json", open, s.openAPI},
		{"GET", "/health", open, s.health},
		{"GET", "/healthz", open, s.health},
		{"GET", "/v1/status", management, s.status},
		{"GET", "/v1/log", management, s.listLog},
		{"GET", "/v1/log/:id", management, s.getLog},
		{"GET", "/v1/log/:id/media/:place", management, s.getLogMedia},
		{"GET", "/v1/models/found", management, s.foundModels},
		{"POST", "/v1/models/load", management, s.loadModel},
		{"PUT", "/v1/models/files/:name", management, s.uploadModel},
		{"GET", "/v1/plugins", management, s.listPlugins},
		{"POST", "/v1/plugins/clear", management, s.clearPlugin},
		{"PUT", "/v1/plugins/files/:name", management, s.uploadPlugin},
	}
	router := httprouter.New()
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	router.HandleOPTIONS = false
	allowed := map[string][]string{}
	for _, t := range table {
		handle := s.route(t.path, t.access, t.handle)
		router.Handle(t.method, t.path, handle)
		allowed[t.path] = append(allowed[t.path], t.method)
		if t.method == http.MethodGet {
			router.Handle(http.MethodHead, t.path, handle)
			allowed[t.path] = append(allowed[t.path], http.MethodHead)
		}
	}
	for path, methods := range allowed {
		methods = append(methods, http.MethodOptions)
		sort.Strings(methods)
		list := strings.Join(methods, ", ")
		router.Handle(http.MethodOptions, path, s.route(path, open, func(w *response, _ *http.Request, _ httprouter.Params) error {
			w.Header().Set("Allow", list)
			w.WriteHeader(http.StatusNoContent)
			return nil
		}))
	}
	router.MethodNotAllowed = http.HandlerFunc(func(hw http.ResponseWriter, r *http.Request) {
		w := hw.(*response) // router.ServeHTTP is only called by serve, with its own writer
		s.refuse(w, appliance.Errorf(appliance.CodeMethod, "", "this route takes %s", w.Header().Get("Allow")))
	})
	router.NotFound = http.HandlerFunc(func(hw http.ResponseWriter, r *http.Request) {
		s.page(hw.(*response), r)
	})
	return router
}

// route puts what all routes share around a handler.
func (s *Server) route(path string, a access, h handler) httprouter.Handle {
	return func(hw http.ResponseWriter, r *http.Request, p httprouter.Params) {
		w := hw.(*response)
		w.route = path
		if !s.authorised(r, a) {
			s.refuse(w, appliance.Errorf(appliance.CodeUnauthorized, "", "this route needs the server's key as Authorization: Bearer KEY"))
			return
		}
		if err := h(w, r, p); err != nil {
			s.refuse(w, err)
		}
	}
}
