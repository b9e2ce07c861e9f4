package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"ganglion/gpu"
	"ganglion/gpu/device"
	"ganglion/gpu/ops"
	"ganglion/gpu/probe"
)

// driverOf is one of this system's drivers.
func driverOf(name string) (probe.Driver, error) {
	drivers := gpu.Drivers("")
	i := slices.IndexFunc(drivers, func(d probe.Driver) bool { return d.Name == name })
	if i < 0 {
		return probe.Driver{}, fmt.Errorf("no driver is called %q", name)
	}
	return drivers[i], nil
}

// hasDriver is the condition of scripts for a device of a driver. Where GANGLION_REQUIRE names
// the driver it is an error that there is none.
func hasDriver(name string) (bool, error) {
	d, err := driverOf(name)
	if err != nil {
		return false, err
	}
	found, err := d.List()
	if len(found) > 0 || !slices.Contains(strings.Split(os.Getenv("GANGLION_REQUIRE"), ","), name) {
		return len(found) > 0, nil
	}
	return false, errors.Join(fmt.Errorf("GANGLION_REQUIRE: %s has no device", name), err)
}

// scriptTested writes down that the devices of a driver passed the questions of a probe, which
// renderers need minutes for and gpu/probe tests: tested DRIVER.
func scriptTested(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tested DRIVER")
	}
	driver, err := driverOf(args[0])
	ts.Check(err)
	infos, err := driver.List()
	ts.Check(err)
	var list strings.Builder
	for _, info := range infos {
		line, err := json.Marshal(map[string]any{"device": info})
		ts.Check(err)
		fmt.Fprintf(&list, "echo '%s'; ", line)
	}
	child := filepath.Join(ts.Getenv("WORK"), "child")
	ts.Check(os.WriteFile(child, []byte("#!/bin/sh\ncase \"$*\" in\n*list*) "+list.String()+`;;
*) echo '{"answer":{"name":"norms","mode":"fast"}}'; echo '{"answer":{"name":"norms","mode":"exact"}}' ;;
esac
echo '{"done":true}'
`), 0o700))
	driver.Open = func(string) (device.Device, error) { return nothingCard{info: infos[0]}, nil }
	driver.Backend = func(d device.Device, _ probe.Use) ops.Backend { return idle{info: d.Info()} }
	m := gpu.NewMachine(gpu.Options{CacheDir: filepath.Join(ts.Getenv("HOME"), ".cache", "ganglion", "gpu"), Version: version,
		Child:   func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, child, args...) },
		Drivers: []probe.Driver{driver}})
	defer m.Close()
	for _, info := range infos {
		_, err := m.Open(context.Background(), gpu.Choice{Device: info.ID})
		ts.Check(err)
	}
}
