package api

// Health is the answer of GET /health.
type Health struct {
	Status string `json:"status"` // "ok", "loading", "no_model"
	*HealthDetail
}

// HealthDetail is what a caller with the key learns.
type HealthDetail struct {
	Version  string   `json:"version"`
	Model    string   `json:"model"`
	Backend  string   `json:"backend"`
	Device   string   `json:"device"`
	Numerics string   `json:"numerics"`
	Queue    Queue    `json:"queue"`
	Loading  *Loading `json:"loading"`
	Degraded []string `json:"degraded,omitempty"` // devices that were lost or quarantined, and why
}

// Queue counts requests.
type Queue struct {
	Running int `json:"running"`
	Queued  int `json:"queued"`
	Max     int `json:"max"`
}

// Loading is how far a load has come, in bytes of weights.
type Loading struct {
	Name  string `json:"name"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// Status is the answer of GET /v1/status.
type Status struct {
	State    string     `json:"state"`
	Version  string     `json:"version"`
	Model    *ModelInfo `json:"model"`
	Encoder  *Encoder   `json:"encoder"` // of pictures and sound, null where the model takes text only
	Films    Films      `json:"films"`
	Media    Limits     `json:"media"`
	Adapters []Adapter  `json:"adapters"`
	Loading  *Loading   `json:"loading"`
	Error    string     `json:"error"`
	Running  int        `json:"running"`
	Queued   int        `json:"queued"`
	QueueMax int        `json:"queue_max"`
	Devices  []Device   `json:"devices"`
	Log      LogStatus  `json:"log"`
	Notes    []string   `json:"notes"`
}

// Encoder is what turns media into rows for the serving model.
type Encoder struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Images bool   `json:"images"`
	Audios bool   `json:"audios"`
	Videos bool   `json:"videos"`
}

// Limits are what a request with media may carry.
type Limits struct {
	BodyBytes int64 `json:"body_bytes"` // of the whole request, where base64 makes four bytes of three
	ItemBytes int64 `json:"item_bytes"` // of one file
	Bytes     int64 `json:"bytes"`      // of all files
	Images    int   `json:"images"`     // items
	Audios    int   `json:"audios"`
	Videos    int   `json:"videos"`
}

// Films is how far the decoder of MP4, WebM and the like is, and of AAC, Vorbis and AMR.
// Frames, animations and Motion-JPEG need none.
type Films struct {
	State string  `json:"state"` // "absent", "idle", "compiling", "ready", "failed"
	Share float64 `json:"share"` // of compiling that is done
	Error string  `json:"error"` // of "failed"
}

// Adapter is a LoRA adapter of the serving model.
type Adapter struct {
	ID      int     `json:"id"`
	Name    string  `json:"name"`
	Path    string  `json:"path"`
	Hash    string  `json:"hash"`
	Bytes   int64   `json:"bytes"`
	Weights int     `json:"weights"` // of the model that it changes
	Scale   float64 `json:"scale"`   // of requests that name no adapters
}

// Device is a device of this machine and whether it is used.
type Device struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`
	State   string `json:"state"` // "in use", "available", "quarantined", "software", "unavailable"
	Note    string `json:"note"`
}

// LogStatus is the state of the request log.
type LogStatus struct {
	State   string `json:"state"` // "ok", "off", or what is wrong
	Dropped int64  `json:"dropped"`
	Path    string `json:"path"`
}

// ModelInfo describes a loaded model.
type ModelInfo struct {
	Name         string   `json:"name"`
	Path         string   `json:"path"`
	Architecture string   `json:"architecture"`
	Quantization string   `json:"quantization"`
	Parameters   int64    `json:"parameters"`
	Hash         string   `json:"hash"`
	FileBytes    int64    `json:"file_bytes"`
	Vocab        int      `json:"vocab"`
	Context      int      `json:"context"`
	TrainContext int      `json:"train_context"`
	Slots        int      `json:"slots"`
	MaxRows      int      `json:"max_rows"`
	Backend      string   `json:"backend"`
	Device       string   `json:"device"`
	Numerics     string   `json:"numerics"`
	KV           string   `json:"kv"`
	Kernels      string   `json:"kernels"`
	Threads      int      `json:"threads"`
	WeightBytes  int64    `json:"weight_bytes"`
	KVBytes      int64    `json:"kv_bytes"`
	ScratchBytes int64    `json:"scratch_bytes"`
	Parts        []Part   `json:"parts"`
	Sampling     Sampling `json:"sampling"`
}

// Part is what of a model lies on one device.
type Part struct {
	Backend      string `json:"backend"`
	Device       string `json:"device"`
	Phase        string `json:"phase"` // "prompt" or "decode" where it serves that phase alone, else empty
	Holds        string `json:"holds"`
	WeightBytes  int64  `json:"weight_bytes"`
	KVBytes      int64  `json:"kv_bytes"`
	ScratchBytes int64  `json:"scratch_bytes"`
}

// Sampling are the sampling values a model file suggests.
type Sampling struct {
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	MinP        *float64 `json:"min_p"`
	TopK        *int64   `json:"top_k"`
}
