package web

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"
	"golang.org/x/sync/semaphore"

	"ganglion/appliance"
	"ganglion/appliance/media"
	"ganglion/web/api"
)

// Completion is one running completion; *appliance.Completion satisfies it.
type Completion interface {
	// Next waits for the next piece; io.EOF follows the last one.
	Next(ctx context.Context) (appliance.Chunk, error)
	// Wait waits for the end and gives the whole.
	Wait(ctx context.Context) (*appliance.Result, error)
	// Result is the whole, once the end was seen.
	Result() *appliance.Result
	// Close ends the completion if it still runs. It may be called twice.
	Close()
}

// Completer starts completions. A refusal that can be known before the first token
// is returned here, as an *appliance.Error.
type Completer interface {
	Start(ctx context.Context, r *appliance.Request) (Completion, error)
}

// FromService makes a service the completer of a server: Go wants the interface
// type in the method's signature.
func FromService(s *appliance.Service) Completer { return service{s} }

type service struct{ s *appliance.Service }

func (s service) Start(ctx context.Context, r *appliance.Request) (Completion, error) {
	c, err := s.s.Start(ctx, r)
	if err != nil {
		return nil, err // never a Completion that holds a nil pointer
	}
	return c, nil
}

// Log is the request log as it is browsed.
type Log interface {
	// List gives records newest first, and the id to continue before, if any.
	List(ctx context.Context, q appliance.RecordQuery) (records []appliance.Record, next string, err error)
	// Get gives one record with its tokens and body; nil when there is none.
	Get(ctx context.Context, id string) (*appliance.Record, error)
	// MediaFile gives the file of one of a record's media; nil when the log has none.
	MediaFile(ctx context.Context, id string, place int) ([]byte, error)
	Status() api.LogStatus
}

// Models finds and loads models.
type Models interface {
	Found(ctx context.Context) []appliance.Found
	// Load begins to load a model; how it ends shows in the status. An unknown id is
	// an *appliance.Error with CodeNotFound.
	Load(ctx context.Context, id string) error
}

// Plugins are the plugins that requests may name.
type Plugins interface {
	List() api.PluginList
	// Clear takes a plugin out of quarantine; false: it was not there.
	Clear(hash string) (bool, error)
	// Add takes a file into the folder of plugins once it was found to work. Why it is
	// not taken is an *appliance.Error.
	Add(ctx context.Context, name string, file []byte) (api.PluginAdded, error)
}

// Config is what a server is made of. Completer and Status are needed; what else
// is nil or zero is absent or takes its default. It is not changed after New.
type Config struct {
	Completer Completer
	Status    func() appliance.Status
	// Vocabulary is the serving model's; ok is false while there is none.
	Vocabulary func() (v appliance.Vocabulary, ok bool)
	// Measure tells what a prompt with media takes; nil: nobody can say.
	Measure   func(context.Context, *appliance.Request) (*appliance.Measured, error)
	Log       Log
	Models    Models
	ModelsDir string // where uploaded models are kept; empty = none are taken
	Plugins   Plugins
	// PluginUpload lets who may manage the server bring plugins.
	PluginUpload bool
	// InlineCode says that completions may bring the code of plugins; it needs a key.
	InlineCode bool
	Metrics    *Metrics
	Devices    func() []api.Device
	Notes      func() []string // plain sentences for the page
	UI         fs.FS           // the page, with index.html at its root
	Version    string
	NewID      func() string

	Listen         string   // address served, such as "127.0.0.1:8080"
	Key            string   // needed by every caller, when set
	Token          string   // needed for management, when set (desktop mode)
	AllowedHosts   []string // names besides the loopback ones and that of Listen
	AllowedOrigins []string // origins of other sites whose pages may call

	MaxBody   int64 // bytes of one body
	MaxBodies int64 // bytes of all bodies held at one time
	MaxModel  int64 // bytes of an uploaded model
	MaxPlugin int64 // bytes of an uploaded plugin
	Media     media.Limits

	KeepAlive     time.Duration // silence in a stream before a comment is sent
	HeaderTimeout time.Duration // for a client to send its headers
	BodyTimeout   time.Duration // for a client to send more of its body
	WriteTimeout  time.Duration // for a client to read what was written
	IdleTimeout   time.Duration // between requests on one connection

	Now    func() time.Time
	Logger *slog.Logger
}

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	set(&c.MaxBody, 64<<20)
	set(&c.MaxBodies, 4*c.MaxBody)
	set(&c.MaxModel, 256<<30)
	set(&c.MaxPlugin, 16<<20)
	set(&c.Media, media.DefaultLimits())
	set(&c.KeepAlive, 10*time.Second)
	set(&c.HeaderTimeout, 10*time.Second)
	set(&c.BodyTimeout, 30*time.Second)
	set(&c.WriteTimeout, 60*time.Second)
	set(&c.IdleTimeout, 2*time.Minute)
	set(&c.Listen, "127.0.0.1:0")
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Vocabulary == nil {
		c.Vocabulary = func() (appliance.Vocabulary, bool) { return nil, false }
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	if c.NewID == nil {
		c.NewID = appliance.NewID
	}
	return c
}

func set[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// Validate checks a configuration. Its errors name the flag to change.
func (c Config) Validate() error {
	if c.Completer == nil || c.Status == nil {
		return fmt.Errorf("web: config: Completer and Status are needed")
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("web: --listen %q: must be HOST:PORT", c.Listen)
	}
	if !isLoopback(host) && c.Key == "" {
		return fmt.Errorf("web: --listen %q: an address that others can reach needs a key, set --key-file or GANGLION_KEY", c.Listen)
	}
	if c.InlineCode && c.Key == "" {
		return fmt.Errorf("web: --inline-plugins: callers that bring code must be known, set --key-file or GANGLION_KEY")
	}
	for _, h := range c.AllowedHosts {
		if name, ok := hostName(h); !ok || name != strings.ToLower(h) {
			return fmt.Errorf("web: --allow-host %q: must be a host name or address without port", h)
		}
	}
	for _, o := range c.AllowedOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != o {
			return fmt.Errorf("web: --allow-origin %q: must be scheme://host[:port] and nothing more", o)
		}
	}
	return nil
}

// isLoopback tells whether a listening host is reached from this machine alone.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// Server answers HTTP. It is safe for concurrent use and holds no goroutine of its
// own beyond those of the requests it answers.
type Server struct {
	cfg     Config
	router  *httprouter.Router
	hosts   map[string]bool
	origins map[string]bool
	assets  map[string]asset
	key     secret
	token   secret
	bodies  *semaphore.Weighted
	metrics *Metrics
	started time.Time
}

// New checks a configuration and makes a server of it.
func New(c Config) (*Server, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: c, metrics: c.Metrics, started: c.Now(),
		hosts:   map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true},
		origins: map[string]bool{},
		key:     newSecret(c.Key), token: newSecret(c.Token),
		bodies: semaphore.NewWeighted(c.MaxBodies),
	}
	if host, _, _ := net.SplitHostPort(c.Listen); host != "" {
		s.hosts[strings.ToLower(host)] = true
	}
	for _, h := range c.AllowedHosts {
		s.hosts[strings.ToLower(h)] = true
	}
	for _, o := range c.AllowedOrigins {
		s.origins[o] = true
	}
	var err error
	if s.assets, err = loadAssets(c.UI); err != nil {
		return nil, err
	}
	s.metrics.observe(s)
	s.router = s.routes()
	return s, nil
}

// Handler is the whole surface as a handler.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// HTTPServer is a server with the limits that a handler cannot set itself: header
// bytes, and the times for headers and between requests. There is no limit on the
// time of an answer: bodies and streams have limits of their own, which count only
// while the client is the one to move.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler:                      s.Handler(),
		ReadHeaderTimeout:            s.cfg.HeaderTimeout,
		IdleTimeout:                  s.cfg.IdleTimeout,
		MaxHeaderBytes:               64 << 10,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
}
