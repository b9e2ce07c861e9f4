"""Starts the real binary on a tiny model for the tests of real clients."""
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TINY = ROOT / "gpu" / "engine" / "testdata" / "arch" / "gemma3-dense.gguf"


class Server:
    """A running `ganglion serve` and what it printed."""

    def __init__(self, *flags):
        binary = os.environ["GANGLION_BIN"]
        self.home = tempfile.TemporaryDirectory()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GANGLION_", "XDG_"))}
        env["HOME"] = self.home.name
        self.process = subprocess.Popen(
            [binary, "serve", "--listen", "127.0.0.1:0", "--model", str(TINY), "--context", "32768",
             "--data", self.home.name + "/data", *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        self.lines = []
        self.url = self._wait_for("listening on ")
        self._drain = threading.Thread(target=self._read_on, daemon=True)
        self._drain.start()

    def _wait_for(self, mark):
        for line in self.process.stderr:
            self.lines.append(line)
            if mark in line:
                return line.split(mark, 1)[1].split()[0].rstrip("/")
        raise RuntimeError("the server ended: " + "".join(self.lines))

    def _read_on(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self._drain.join(timeout=30)
        self.process.stderr.close()
        self.home.cleanup()


def wait_ready(server):
    """Polls /health until the model can answer; the server says when to retry."""
    for _ in range(600):
        try:
            server.get("/health")
            return
        except urllib.error.HTTPError as e:
            if e.code != 503:
                raise
        threading.Event().wait(0.05)
    raise RuntimeError("the model was not loaded in time")


@pytest.fixture(scope="session")
def server():
    s = Server()
    try:
        wait_ready(s)
        yield s
    finally:
        s.close()
