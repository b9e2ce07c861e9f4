package web

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
	"ganglion/web/api"
)

// models lists the serving model first, then those found on this machine.
func (s *Server) models(w *response, r *http.Request, _ httprouter.Params) error {
	list := api.ModelList{Object: "list", Data: []api.ModelItem{}}
	created := s.started.Unix()
	serving := s.cfg.Status().Model
	found := s.found(r)
	if serving != nil {
		item := api.ModelItem{ID: serving.Name, Object: "model", Created: created, OwnedBy: "ganglion",
			Bytes: serving.FileBytes, Path: serving.Path, Available: true, Loaded: true}
		for _, f := range found {
			if f.Path == serving.Path {
				item.Source = f.Source
			}
		}
		list.Data = append(list.Data, item)
	}
	for _, f := range found {
		if serving != nil && f.Path == serving.Path {
			continue
		}
		list.Data = append(list.Data, api.ModelItem{ID: f.ID, Object: "model", Created: created, OwnedBy: "ganglion",
			Source: f.Source, Bytes: f.Bytes, Path: f.Path, Available: f.Available})
	}
	w.json(http.StatusOK, encode(list))
	return nil
}

func (s *Server) found(r *http.Request) []appliance.Found {
	if s.cfg.Models == nil {
		return []appliance.Found{}
	}
	return append([]appliance.Found{}, s.cfg.Models.Found(r.Context())...)
}

// foundModels tells the page where models lie.
func (s *Server) foundModels(w *response, r *http.Request, _ httprouter.Params) error {
	w.json(http.StatusOK, encode(api.FoundList{Models: s.found(r)}))
	return nil
}

// loadModel begins to load a model. How it ends shows in the status; until then,
// and when it fails, the model that serves goes on serving.
func (s *Server) loadModel(w *response, r *http.Request, _ httprouter.Params) error {
	data, release, err := s.readBody(w, r, smallBody)
	defer release()
	if err != nil {
		return err
	}
	id, err := api.DecodeLoad(data)
	if err != nil {
		return err
	}
	if s.cfg.Models == nil {
		return appliance.Errorf(appliance.CodeNotFound, "id", "there is no such model")
	}
	if err := s.cfg.Models.Load(r.Context(), id); err != nil {
		return err
	}
	w.json(http.StatusAccepted, []byte(`{"status":"loading"}`))
	return nil
}
