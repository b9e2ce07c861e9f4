"""Streams that come apart on their way keep their text with every client."""
import pytest
from adapters import CLIENTS
from proxy import Proxy, crlf, crlf_one_byte, one_byte, one_newline


def texts(server, deliver, folder):
    with Proxy(server.url, deliver) as proxy:
        clients = {name: kind(proxy.url + "/v1", folder) for name, kind in CLIENTS.items()}
        return {name: "".join(c.stream("Hello", max_tokens=24, temperature=0)) for name, c in clients.items()}


@pytest.mark.parametrize("deliver", [one_byte, crlf, crlf_one_byte])
def test_text_is_equal_behind_a_proxy(server, reference, deliver, tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    assert texts(server, deliver, tmp_path) == dict.fromkeys(CLIENTS, reference.hello)


def test_a_proxy_that_breaks_events_is_noticed(server, reference):
    with Proxy(server.url, one_newline) as proxy:
        client = CLIENTS["openai"](proxy.url + "/v1", None)
        try:
            got = "".join(client.stream("Hello", max_tokens=24, temperature=0))
        except ValueError as e:  # the events run into one that is no JSON
            got = repr(e)
    assert got != reference.hello
