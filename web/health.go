package web

import (
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"ganglion/appliance"
	"ganglion/gpu/engine"
	"ganglion/web/api"
)

// health answers 200 only when a token can be produced; the status is "degraded" when
// that is not on every device it could be on. Who has no key where one is needed learns
// the state alone.
func (s *Server) health(w *response, r *http.Request, _ httprouter.Params) error {
	st := s.cfg.Status()
	h := api.Health{Status: string(st.State)}
	code := http.StatusServiceUnavailable
	var degraded []string
	switch st.State {
	case appliance.StateReady:
		h.Status, code = "ok", http.StatusOK
		if degraded = s.degraded(&st); len(degraded) > 0 {
			h.Status = "degraded"
		}
	case appliance.StateLoading:
		w.Header().Set("Retry-After", strconv.Itoa(failures[appliance.CodeLoading].retryAfter))
	default:
		w.Header().Set("Retry-After", strconv.Itoa(failures[appliance.CodeNoModel].retryAfter))
	}
	if s.authorised(r, caller) {
		h.HealthDetail = &api.HealthDetail{
			Version: s.cfg.Version, Degraded: degraded, Loading: loading(st.Loading),
			Queue: api.Queue{Running: st.Running, Queued: st.Queued, Max: st.QueueMax},
		}
		if m := st.Model; m != nil {
			h.Model, h.Backend, h.Device, h.Numerics = m.Name, m.Backend, m.Device, m.Numerics
		}
	}
	w.json(code, encode(h))
	return nil
}

// degraded says what was lost or set aside.
func (s *Server) degraded(st *appliance.Status) (what []string) {
	if m := st.Model; m != nil && m.Moved != "" {
		what = append(what, m.Moved)
	}
	if s.cfg.Devices == nil {
		return what
	}
	for _, d := range s.cfg.Devices() {
		if d.State == "quarantined" {
			what = append(what, d.Name+" through "+d.Backend+" is quarantined: "+d.Note)
		}
	}
	return what
}

// status tells the page everything about the server but its log's rows.
func (s *Server) status(w *response, _ *http.Request, _ httprouter.Params) error {
	st := s.cfg.Status()
	out := api.Status{
		State: string(st.State), Version: s.cfg.Version, Model: modelInfo(st.Model), Encoder: encoderInfo(st.Encoder), Films: films(&st), Media: s.limits(), Adapters: adapters(st.Adapters), Loading: loading(st.Loading),
		Error: st.Error, Running: st.Running, Queued: st.Queued, QueueMax: st.QueueMax,
		Devices: []api.Device{}, Notes: []string{}, Log: api.LogStatus{State: "off"},
	}
	if s.cfg.Devices != nil {
		out.Devices = append(out.Devices, s.cfg.Devices()...)
	}
	if s.cfg.Notes != nil {
		out.Notes = append(out.Notes, s.cfg.Notes()...)
	}
	if s.cfg.Log != nil {
		out.Log = s.cfg.Log.Status()
	}
	w.json(http.StatusOK, encode(out))
	return nil
}

func loading(p *appliance.Progress) *api.Loading {
	if p == nil {
		return nil
	}
	return &api.Loading{Name: p.Name, Done: p.Done, Total: p.Total}
}

// adapters is never nil: without adapters the list is empty.
func adapters(list []appliance.AdapterStatus) []api.Adapter {
	out := make([]api.Adapter, len(list))
	for i, a := range list {
		out[i] = api.Adapter{ID: a.ID, Name: a.Name, Path: a.Path, Hash: a.Hash, Bytes: a.Bytes, Weights: a.Weights, Scale: a.Scale}
	}
	return out
}

func encoderInfo(e *appliance.EncoderInfo) *api.Encoder {
	if e == nil {
		return nil
	}
	return &api.Encoder{Name: e.Name, Path: e.Path, Images: e.Images, Audios: e.Audios, Videos: e.Images} // a film is pictures
}

func (s *Server) limits() api.Limits {
	l := s.cfg.Media
	return api.Limits{BodyBytes: s.cfg.MaxBody, ItemBytes: l.ItemBytes, Bytes: l.TotalBytes, Images: l.Images, Audios: l.Audios, Videos: l.Videos}
}

func films(st *appliance.Status) api.Films {
	f := api.Films{State: string(st.Films.State), Share: st.Films.Share}
	if st.Films.Err != nil {
		f.Error = st.Films.Err.Error()
	}
	return f
}

func modelInfo(m *engine.Info) *api.ModelInfo {
	if m == nil {
		return nil
	}
	return &api.ModelInfo{
		Name: m.Name, Path: m.Path, Architecture: m.Architecture, Quantization: m.Quantization,
		Parameters: m.Parameters, Hash: m.Hash, FileBytes: m.FileBytes,
		Vocab: m.Vocab, Context: m.Context, TrainContext: m.TrainContext, Slots: m.Slots, MaxRows: m.MaxRows,
		Backend: m.Backend, Device: m.Device, Numerics: m.Numerics, KV: m.KV, Kernels: m.Kernels, Threads: m.Threads,
		WeightBytes: m.WeightBytes, KVBytes: m.KVBytes, ScratchBytes: m.ScratchBytes,
		Parts: modelParts(m),
		Sampling: api.Sampling{
			Temperature: m.Sampling.Temperature, TopP: m.Sampling.TopP, MinP: m.Sampling.MinP, TopK: m.Sampling.TopK,
		},
	}
}

// modelParts is never nil.
func modelParts(m *engine.Info) []api.Part {
	out := make([]api.Part, len(m.Parts))
	for i, p := range m.Parts {
		out[i] = api.Part{Backend: p.Backend, Device: p.Device, Phase: p.Phase, Holds: p.Holds,
			WeightBytes: p.Memory.Weights, KVBytes: p.Memory.KV, ScratchBytes: p.Memory.Scratch}
	}
	return out
}

// openAPI serves our own document.
func (s *Server) openAPI(w *response, _ *http.Request, _ httprouter.Params) error {
	w.json(http.StatusOK, api.Document())
	return nil
}
