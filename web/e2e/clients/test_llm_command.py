"""simonw's llm as its users run it: the command, in a process of its own."""
import os
import signal
import subprocess
import sys

import pytest
from adapters import write_llm_config
from conftest import NO_END, eventually


@pytest.fixture(scope="module")
def command(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llm")
    write_llm_config(folder, server.url + "/v1")
    env = {**os.environ, "LLM_USER_PATH": str(folder)}

    def start(*flags):
        # A shell that runs the tests in the background ignores Ctrl+C for all its
        # children, and Python then leaves it ignored; a user's terminal does not.
        return subprocess.Popen([sys.executable, "-m", "llm", "-m", "ganglion", "--no-log", *flags, "Hello"],
                                env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    return start


def options(**params):
    return [word for name, value in params.items() for word in ("-o", name, str(value))]


@pytest.mark.parametrize("flags", [[], ["--no-stream"]], ids=["stream", "plain"])
def test_text(command, reference, flags):
    process = command(*flags, *options(max_tokens=24, temperature=0, stop=reference.stop))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.decode() == reference.stopped + "\n"


def test_interrupt_frees_the_slot(command, server):
    before = server.newest()
    process = command(*options(max_tokens=100_000, seed=1, logit_bias=str(NO_END).replace("'", '"')))
    assert len(process.stdout.read(3)) == 3
    assert server.get("/v1/status")["running"] == 1
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    eventually("slot free", lambda: server.get("/v1/status")["running"] == 0)
    row = server.closed_after(before)
    assert row["outcome"] == "cancelled"


def test_a_bad_parameter_shows_its_message(command, reference):
    process = command(*options(max_tokens=-1))
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert reference.message["max_tokens"] in err.decode()
