"""Twelve scripts that every client runs, as far as it has words for them."""
import concurrent.futures
import gc
import itertools

import pytest
from adapters import CLIENTS
from conftest import NO_END, eventually

GREEDY = dict(max_tokens=24, temperature=0)
LONG = 100_000  # tokens that take far longer than a test waits
KILOBYTES_30 = " this is the" * 2500


def clients(script):
    """Runs a test with each client that can express the script."""
    able = [name for name, kind in CLIENTS.items() if script not in kind.cannot]
    return pytest.mark.parametrize("client", able, indirect=True)


@pytest.fixture(scope="module")
def made(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM_USER_PATH", str(folder))
        yield {name: kind(server.url + "/v1", folder) for name, kind in CLIENTS.items()}


@pytest.fixture
def client(made, request):
    return made[request.param]


@clients("plain")
def test_plain(client, reference):
    assert client.complete("Hello", **GREEDY).texts == [reference.hello]


@clients("stream")
def test_stream_gives_the_plain_text(client, reference):
    pieces = list(client.stream("Hello", **GREEDY))
    assert "".join(pieces) == reference.hello
    assert len([p for p in pieces if p]) > 3


@clients("stop")
def test_stop_as_a_string(client, reference):
    assert client.complete("Hello", stop=reference.stop, **GREEDY).texts == [reference.stopped]
    assert "".join(client.stream("Hello", stop=reference.stop, **GREEDY)) == reference.stopped


@clients("array prompt")
def test_array_prompt(client, reference):
    assert client.complete(["Hello"], **GREEDY).texts == [reference.hello]


@clients("batch of two")
def test_batch_of_two(client, reference):
    assert client.complete(["Hello", "World"], **GREEDY).texts == [reference.hello, reference.world]


@clients("integer logprobs")
def test_integer_logprobs(client, reference):
    lp = client.complete("Hello", logprobs=2, **GREEDY).logprobs
    n = GREEDY["max_tokens"]
    assert [len(lp[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")] == [n] * 4
    assert "".join(lp["tokens"]) == reference.hello
    for token, p, top in zip(lp["tokens"], lp["token_logprobs"], lp["top_logprobs"]):
        assert p < 0
        assert top[token] == p == max(top.values())  # greedy: the chosen one is the likeliest
        assert len(top) <= 3


@clients("usage chunk")
def test_usage_chunk(client, reference):
    usage = []
    text = "".join(client.stream("Hello", usage=usage, **GREEDY))
    assert text == reference.hello
    assert usage == [client.complete("Hello", **GREEDY).total_tokens]


@clients("abort")
def test_abort_at_token_three_frees_the_slot(client, server):
    before = server.newest()
    stream = client.stream("Hello", max_tokens=LONG, temperature=1, seed=1, logit_bias=NO_END)
    assert len(list(itertools.islice((p for p in stream if p), 3))) == 3
    assert server.get("/v1/status")["running"] == 1
    stream.close()

    def free():
        # LangChain and LiteLLM leave the connection to the collector, which comes when it
        # likes, and threads of LiteLLM that log hold it a little longer.
        gc.collect()
        return server.get("/v1/status")["running"] == 0

    eventually("slot free", free)
    row = server.closed_after(before)
    assert row["outcome"] == "cancelled"
    assert 3 <= row["completion_tokens"] < LONG


@clients("bad parameter")
def test_a_bad_parameter_shows_its_message(client, reference):
    (field, _), = client.bad.items()
    with pytest.raises(Exception) as e:
        client.complete("Hello", **client.bad)
    assert reference.message[field] in str(e.value)
    with pytest.raises(Exception) as e:
        list(client.stream("Hello", **client.bad))
    assert reference.message[field] in str(e.value)


@clients("parallel")
def test_two_in_parallel_equal_one_alone(client, reference):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda p: client.complete(p, **GREEDY).texts, ["Hello", "World"]))
    assert texts == [[reference.hello], [reference.world]]


@clients("seed")
def test_a_seed_repeats(client):
    def text(seed):
        return client.complete("Hello", max_tokens=24, temperature=1, seed=seed).texts

    assert text(7) == text(7)
    assert text(7) != text(8)


@clients("30 kilobytes")
def test_a_prompt_of_30_kilobytes(client, server):
    before = server.newest()
    assert client.complete(KILOBYTES_30, max_tokens=1, temperature=0).total_tokens > 10_000
    row = server.closed_after(before)
    assert server.get("/v1/log/" + row["id"])["prompt"] == KILOBYTES_30
