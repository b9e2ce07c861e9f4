"""Starts the real binary on a tiny model for the tests of real clients."""
import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

# Read by the packages when they are imported: no test leaves this machine.
os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LANGSMITH_TRACING="false", SCHEMATHESIS_HOOKS="")

import httpx
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TINY = ROOT / "gpu" / "engine" / "testdata" / "arch" / "gemma3-dense.gguf"
RECORDED = ROOT / "gpu" / "encoder" / "testdata"  # models that see and hear, and what another program answered

# The tiny model ends a text on its token 2, which a test of a long answer bans.
NO_END = {"2": -100}


def eventually(what, condition, seconds=120):
    """Waits until condition() is true and returns it; looks again every 10 ms."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not so after {seconds} s"
        threading.Event().wait(0.01)


class Server:
    """A running `ganglion serve`. Numerics are exact, so that a text does not
    depend on what else is computed at the same time."""

    def __init__(self, *flags, model=TINY):
        self.home = tempfile.TemporaryDirectory()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GANGLION_", "XDG_"))}
        env["HOME"] = self.home.name
        self.process = subprocess.Popen(
            [os.environ["GANGLION_BIN"], "serve", "--listen", "127.0.0.1:0", "--model", str(model),
             "--numerics", "exact", "--data", self.home.name + "/data", *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        self.lines = []
        self.http = None
        try:
            self.url = self._wait_for("listening on ")
            self._drain = threading.Thread(target=self._read_on, daemon=True)
            self._drain.start()
            self.http = httpx.Client(base_url=self.url, timeout=120, trust_env=False)
            eventually("ready", lambda: self.http.get("/health").status_code == 200)
        except BaseException:
            self.close()
            raise

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
        return self.http.get(path).raise_for_status().json()

    def post(self, **body):
        return self.http.post("/v1/completions", json=body)

    def newest(self):
        """The newest row of the request log, or None."""
        rows = self.get("/v1/log?limit=1")["records"]
        return rows[0] if rows else None

    def closed_after(self, before):
        """The newest row, once it is another one than before and its request has ended."""
        def there():
            row = self.newest()
            return row and (before is None or row["id"] != before["id"]) and row["outcome"] != "open" and row

        return eventually("row there and closed", there)

    def close(self):
        if self.http:
            self.http.close()
        self.process.terminate()
        self.process.wait(timeout=120)
        self.process.stderr.close()
        self.home.cleanup()


@dataclasses.dataclass
class Reference:
    """What the server says to a client that is none: the bare body and answer."""
    hello: str
    world: str
    stop: str      # printable, of several tokens, in the middle of hello
    stopped: str   # hello up to stop
    message: dict  # text of the refusal, by the field at fault


@pytest.fixture(scope="session")
def server():
    s = Server("--context", "131072")
    try:
        yield s
    finally:
        s.close()


@pytest.fixture(scope="session")
def reference(server):
    def choice(prompt):
        return server.post(prompt=prompt, max_tokens=24, temperature=0, logprobs=0).json()["choices"][0]

    hello, world = choice("Hello"), choice("World")["text"]
    stop = next(m for m in re.finditer(r"[!-~]{2,}", hello["text"]) if m.start() > 0)
    assert stop[0] not in hello["logprobs"]["tokens"], "the stop string is one token"
    assert hello["text"] != world
    message = {field: server.post(prompt="Hello", **{field: value}).json()["error"]["message"]
               for field, value in [("top_p", 2), ("max_tokens", -1)]}
    return Reference(hello["text"], world, stop[0], hello["text"][:hello["text"].index(stop[0])], message)
