package web

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
	"ganglion/web/api"
)

// measureMedia answers POST /v1/media/measure: what a prompt with media takes of the context
// and how the model will see each item, from headers alone.
func (s *Server) measureMedia(w *response, r *http.Request, _ httprouter.Params) error {
	if s.cfg.Measure == nil {
		return appliance.Errorf(appliance.CodeNoModel, "", "no model is loaded")
	}
	data, release, err := s.readBody(w, r, s.cfg.MaxBody)
	defer release()
	if err != nil {
		return err
	}
	req, err := api.DecodeMeasure(data, s.cfg.Media)
	if err != nil {
		return err
	}
	letGo, err := s.holdFiles(r.Context(), req.Media, len(data))
	defer letGo()
	if err != nil {
		return err
	}
	m, err := s.cfg.Measure(r.Context(), req)
	if err != nil {
		return err
	}
	w.json(http.StatusOK, encode(m))
	return nil
}
