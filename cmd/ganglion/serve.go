package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/appliance/media/film"
	"ganglion/gpu"
	"ganglion/plugins/host"
	"ganglion/storage"
	"ganglion/web"
	"ganglion/web/api"
	"ganglion/web/ui"
)

const serveLong = `Serves the completion API and the page until it is interrupted.

A model file named with --model that is not there or is no model file is an error
(exit code 3). Everything else about a model is found out while the server runs:
until a model is loaded completions answer 503, and a model that does not load
leaves the one that serves in place. A port that is taken is replaced by the next
free one, unless --listen named it.`

func newServe(e *env, s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Serve the completion API and the page",
		Long:  serveLong,
		Args:  noArgs("name the model with --model FILE"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.checkNamed(c.Context()); err != nil {
				return err
			}
			return serve(c.Context(), e, s, nil)
		},
	}
	s.serveFlags(c)
	return c
}

// house is a running appliance: everything that serve composes and must close.
type house struct {
	e       *env
	s       *settings
	log     *storage.Log // nil when logging is off
	service *appliance.Service
	machine *gpu.Machine
	films   *film.Engine
	models  *models
	plugins *plugins
	metrics *web.Metrics
	cpu     api.Device
	logger  *slog.Logger
}

// serve runs until ctx is done. In desktop mode in is the instance to announce; it
// is nil otherwise.
func serve(ctx context.Context, e *env, s *settings, in *instance) error {
	listener, err := s.listen()
	if err != nil {
		return err
	}
	h, err := openHouse(ctx, e, s)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	address := "http://" + listener.Addr().String()
	server, err := h.server(listener.Addr().String(), in)
	if err != nil {
		return errors.Join(usage(err), listener.Close(), h.close())
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	e.note("%s listening on %s", version, address)
	if in != nil {
		in.URL = address
		h.announce(ctx, in)
	}
	h.models.start(ctx)
	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
	}
	if in != nil {
		err = errors.Join(err, in.remove())
	}
	return errors.Join(err, shutdown(ctx, server, 5*time.Second, h.cancel), h.close())
}

// announce opens the page in the browser and leaves the note for a second start.
func (h *house) announce(ctx context.Context, in *instance) {
	if err := in.save(); err != nil {
		h.e.note("a second start will not find this one: %v", err)
	}
	if err := h.e.openBrowser(ctx, in.page()); err != nil {
		h.e.note("no browser could be opened (%v); open %s yourself", err, in.page())
	}
}

// shutdown ends the server: running answers get a moment, then are cancelled, which their
// clients are told, and what does not end even then is cut.
func shutdown(ctx context.Context, server *http.Server, moment time.Duration, cancelAll func()) error {
	ctx = context.WithoutCancel(ctx)
	patient, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	err := server.Shutdown(patient)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	hasty, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	go cancelAll()
	if err := server.Shutdown(hasty); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

// cancel ends all requests.
func (h *house) cancel() {
	at, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.service.Close(at) // that they were cancelled
}

func openHouse(ctx context.Context, e *env, s *settings) (*house, error) {
	h := &house{e: e, s: s, logger: e.logger(), metrics: web.NewMetrics(), cpu: cpuDevice(), machine: s.machine()}
	var recorder appliance.Recorder = noLog{}
	var err error
	if s.Log {
		if h.log, err = s.openLog(h.logger); err != nil {
			return nil, err
		}
		recorder = h.log
	}
	if h.plugins, err = s.openPlugins(h.logger); err != nil {
		return nil, errors.Join(err, h.close())
	}
	cfg := s.service(h.metrics.Recorder(recorder), h.logger)
	cfg.Plugins = h.plugins
	h.films = s.filmEngine()
	cfg.Film = h.films
	if err = s.choosePlugins(&cfg); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if h.service, err = appliance.NewService(cfg); err != nil {
		return nil, errors.Join(usage(err), h.close())
	}
	h.models = &models{e: e, s: s, service: h.service, life: ctx, machine: h.machine, films: h.films}
	return h, nil
}

// noLog is the recorder where no log is kept; the metrics count all the same.
type noLog struct{}

func (noLog) Begin(context.Context, *appliance.Record) {}
func (noLog) End(*appliance.Record)                    {}

// close ends everything in the reverse order of openHouse.
func (h *house) close() error {
	var errs []error
	if h.service != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, h.service.Close(ctx))
	}
	if h.films != nil {
		errs = append(errs, h.films.Close())
	}
	if h.plugins != nil {
		errs = append(errs, h.plugins.close())
	}
	if h.machine != nil {
		errs = append(errs, h.machine.Close())
	}
	if h.log != nil {
		errs = append(errs, h.log.Close())
	}
	return errors.Join(errs...)
}

func (h *house) server(address string, in *instance) (*http.Server, error) {
	limits := mediaLimits(&h.s.Settings)
	if limits.Folder = h.s.MediaDir; limits.Folder != "" {
		if info, err := os.Stat(limits.Folder); err != nil || !info.IsDir() {
			return nil, fail(exitUsage, "", "media-dir: %s is no folder that can be read", limits.Folder)
		}
	}
	c := web.Config{
		Media: limits, MaxBody: h.s.BodyBytes,
		Completer: web.FromService(h.service), Status: h.service.Status,
		Vocabulary: h.service.Vocabulary,
		Measure:    h.service.Measure,
		Models:     h.models, ModelsDir: h.s.modelsDir(), Metrics: h.metrics,
		Devices: h.devices, Notes: h.notes, UI: ui.Files, Version: version, NewID: appliance.NewID,
		Listen: address, Key: h.s.Key, AllowedHosts: h.s.hosts(), AllowedOrigins: h.s.AllowedOrigins, Logger: h.logger,
	}
	c.Plugins, c.PluginUpload, c.MaxPlugin = pluginPage{h}, h.s.PluginUpload, host.MaxFileBytes
	c.InlineCode = h.s.InlinePlugins
	if h.log != nil {
		c.Log = browsed{h.log}
	}
	if in != nil {
		c.Token = in.Token
	}
	srv, err := web.New(c)
	if err != nil {
		return nil, err
	}
	return srv.HTTPServer(), nil
}

// browsed is the log as the web sees it.
type browsed struct{ *storage.Log }

// Status translates the log's own words.
func (b browsed) Status() api.LogStatus {
	st := b.Stats()
	return api.LogStatus{State: st.State, Dropped: st.Dropped, Path: st.Path}
}

// cpuDevice is the processor as the page shows it.
func cpuDevice() api.Device {
	d := api.Device{Name: "CPU", Backend: "cpu", State: "available"}
	b, err := gpu.CPU()
	if err != nil {
		d.State = err.Error()
		return d
	}
	defer b.Close()
	d.Name = b.Caps().Device
	return d
}

// devices lists what the engine could run on, and first what it runs on.
func (h *house) devices() []api.Device {
	m := h.service.Status().Model
	list := deviceList(h.machine.Known(), m)
	if m == nil {
		return append(list, h.cpu)
	}
	used := slices.IndexFunc(list, func(d api.Device) bool { return d.State == "in use" })
	switch {
	case used > 0:
		d := list[used]
		list = slices.Insert(slices.Delete(list, used, used+1), 0, d)
	case used < 0:
		list = slices.Insert(list, 0, api.Device{Name: m.Device, Backend: m.Backend, State: "in use"})
	}
	if m.Backend != h.cpu.Backend {
		list = append(list, h.cpu)
	}
	return list
}

// notes are the plain sentences of the page.
func (h *house) notes() (notes []string) {
	st := h.service.Status()
	switch f := st.Films; f.State {
	case film.Compiling:
		notes = append(notes, fmt.Sprintf("The decoder of films is being compiled: %.0f %% are done.", 100*f.Share))
	case film.Failed:
		notes = append(notes, fmt.Sprintf("The decoder of films could not be compiled: %v. The next film tries again.", f.Err))
	}
	m := st.Model
	if m != nil && m.Moved != "" {
		notes = append(notes, "A device failed: "+m.Moved)
	}
	if m == nil || m.Backend == "cpu" {
		notes = append(notes, "No GPU is in use: Ganglion computes on the CPU.")
	}
	return notes
}

// nearbyPorts is how many ports after a taken one are tried before any free one.
const nearbyPorts = 20

// listen opens the address. A port that is taken is replaced by the next free one
// when nobody named it; a port named by hand is an error.
func (s *settings) listen() (net.Listener, error) {
	l, err := net.Listen("tcp", s.Listen)
	if err == nil {
		return l, nil
	}
	host, port, splitErr := net.SplitHostPort(s.Listen)
	if splitErr != nil {
		return nil, fail(exitUsage, "for example --listen 127.0.0.1:8080", "--listen %q is not HOST:PORT", s.Listen)
	}
	reason := plain(err)
	if s.given("listen") {
		return nil, fail(exitFailure, listenHint(err), "cannot listen on %s: %s", s.Listen, reason)
	}
	n, _ := strconv.Atoi(port) // the settings were checked: it is a number
	for i := 1; i <= nearbyPorts && n+i < 1<<16; i++ {
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n+i))); err == nil {
			break
		}
	}
	if err != nil {
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fail(exitFailure, "", "cannot listen on %s: %s", host, plain(err))
	}
	s.e.note("%s cannot be had (%s); using %s instead", s.Listen, reason, l.Addr())
	return l, nil
}

// plain is a network error without the wrapping that repeats the address.
func plain(err error) string {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Err.Error()
	}
	return err.Error()
}

func listenHint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program has this port; choose another one, or port 0 for any free one"
	case errors.Is(err, os.ErrPermission):
		return "ports below 1024 need special rights; choose a higher one"
	}
	return ""
}

// usage marks an error as one of the settings.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err: err, code: exitUsage}
}

// hosts are the names this server answers to besides the loopback ones: those
// allowed and the one it was told to listen at, if that is a name.
func (s *settings) hosts() []string {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil || host == "" || net.ParseIP(host) != nil {
		return s.AllowedHosts
	}
	return append(slices.Clone(s.AllowedHosts), strings.ToLower(host))
}
