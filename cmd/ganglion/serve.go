package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ganglion/appliance"
	"ganglion/storage"
	"ganglion/web"
	"ganglion/web/api"
	"ganglion/web/ui"
)

func newServe(e *env, s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the completion API and the page",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.load(cmd); err != nil {
				return err
			}
			return serve(cmd.Context(), e, s, nil)
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
	models  *models
	logger  *slog.Logger
}

// serve runs until ctx is done. In desktop mode in is the instance to announce; it
// is nil otherwise.
func serve(ctx context.Context, e *env, s *settings, in *instance) error {
	listener, err := s.listen(in != nil)
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
	e.note("ganglion %s: listening on %s", version, address)
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
	return errors.Join(err, shutdown(ctx, server), h.close())
}

// announce opens the page in the browser and leaves the note for a second start.
func (h *house) announce(ctx context.Context, in *instance) {
	if err := in.save(); err != nil {
		h.e.note("ganglion: a second start will not find this one: %v", err)
	}
	if err := h.e.openBrowser(ctx, in.page()); err != nil {
		h.e.note("ganglion: no browser could be opened (%v); open %s yourself", err, in.page())
	}
}

// shutdown ends the server: running answers get a moment, then are cut.
func shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}

func openHouse(ctx context.Context, e *env, s *settings) (*house, error) {
	h := &house{e: e, s: s, logger: slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	var recorder appliance.Recorder
	if s.Log {
		var err error
		if h.log, err = storage.Open(s.logConfig(h.logger)); err != nil {
			return nil, err
		}
		recorder = h.log
	}
	metrics := web.NewMetrics()
	s.metrics = metrics
	var err error
	if h.service, err = appliance.NewService(s.service(metrics.Recorder(recorder))); err != nil {
		return nil, errors.Join(usage(err), h.close())
	}
	h.models = &models{e: e, s: s, service: h.service}
	return h, nil
}

// close ends everything in the reverse order of openHouse.
func (h *house) close() error {
	var errs []error
	if h.service != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, h.service.Close(ctx))
	}
	if h.models != nil {
		errs = append(errs, h.models.close())
	}
	if h.log != nil {
		errs = append(errs, h.log.Close())
	}
	return errors.Join(errs...)
}

func (h *house) server(address string, in *instance) (*http.Server, error) {
	c := web.Config{
		Completer: completer{h.service}, Status: h.service.Status,
		Vocabulary: h.service.Vocabulary,
		Models:     h.models, ModelsDir: h.s.modelsDir(), Metrics: h.s.metrics,
		Devices: h.devices, Notes: h.notes, UI: ui.Files, Version: version, NewID: appliance.NewID,
		Listen: address, Key: h.s.Key, AllowedHosts: h.s.AllowedHosts, AllowedOrigins: h.s.AllowedOrigins, Logger: h.logger,
	}
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

// devices lists what the engine could run on.
func (h *house) devices() []api.Device {
	d := api.Device{Name: "CPU", Backend: "cpu", State: "available"}
	if m := h.service.Status().Model; m != nil {
		d.Name, d.Backend, d.State = m.Device, m.Backend, "in use"
	}
	return []api.Device{d}
}

// notes are the plain sentences of the page.
func (h *house) notes() []string {
	return []string{"No GPU backend is built into this version: Ganglion runs on the CPU."}
}

// listen opens the address. A port that is taken is replaced by the next free one
// when nobody named it; a port named by hand is an error.
func (s *settings) listen(desktop bool) (net.Listener, error) {
	l, err := net.Listen("tcp", s.Listen)
	if err == nil {
		return l, nil
	}
	host, port, splitErr := net.SplitHostPort(s.Listen)
	if splitErr != nil {
		return nil, fail(exitUsage, "for example --listen 127.0.0.1:8080", "--listen %q is not HOST:PORT", s.Listen)
	}
	if s.given("listen") {
		return nil, fail(exitFailure, listenHint(err, port), "cannot listen on %s: %s", s.Listen, plain(err))
	}
	if !desktop {
		s.e.note("ganglion: %s: %s; taking a free port instead", s.Listen, plain(err))
	}
	l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fail(exitUnavailable, "", "cannot listen on %s: %s", host, plain(err))
	}
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

func listenHint(err error, port string) string {
	switch {
	case strings.Contains(err.Error(), "address already in use"):
		return "another program has port " + port + "; choose another one, or port 0 for any free one"
	case errors.Is(err, os.ErrPermission):
		return "ports below 1024 need special rights; choose a higher one"
	}
	return ""
}

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err: fmt.Errorf("%w", err), code: exitUsage}
}
