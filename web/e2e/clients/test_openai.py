"""openai-python as it is, against the real binary."""
import concurrent.futures

import httpx
import openai
import pytest


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="any-key", max_retries=0)


COMMON = dict(model="whatever", max_tokens=8, temperature=0)


def joined(stream):
    return "".join(c.choices[0].text for c in stream if c.choices)


def test_plain_and_stream_give_the_same_text(client):
    plain = client.completions.create(prompt="Hello", **COMMON)
    assert plain.choices[0].finish_reason in ("stop", "length")
    assert plain.usage.total_tokens == plain.usage.prompt_tokens + plain.usage.completion_tokens
    assert joined(client.completions.create(prompt="Hello", stream=True, **COMMON)) == plain.choices[0].text


def test_stop_as_a_string(client):
    text = client.completions.create(prompt="Hello", **COMMON).choices[0].text
    stop = text[len(text) // 2]
    stopped = client.completions.create(prompt="Hello", stop=stop, **COMMON).choices[0]
    assert stopped.text == text.split(stop)[0]
    assert stopped.finish_reason == "stop"


def test_array_prompt_and_batch_of_two(client):
    one = client.completions.create(prompt=["Hello"], **COMMON)
    two = client.completions.create(prompt=["Hello", "World"], **COMMON)
    assert len(one.choices) == 1
    assert [c.index for c in two.choices] == [0, 1]
    assert two.choices[0].text == one.choices[0].text


def test_token_prompt(client):
    assert client.completions.create(prompt=[1, 72, 101], **COMMON).usage.prompt_tokens == 3


def test_integer_logprobs(client):
    answer = client.completions.create(prompt="Hello", logprobs=2, **COMMON)
    lp = answer.choices[0].logprobs
    n = answer.usage.completion_tokens
    assert len(lp.tokens) == len(lp.token_logprobs) == len(lp.text_offset) == n
    assert all(v <= 0 for v in lp.token_logprobs)
    assert all(len(top) >= 2 for top in lp.top_logprobs)


def test_usage_chunk(client):
    chunks = list(client.completions.create(prompt="Hello", stream=True, stream_options={"include_usage": True}, **COMMON))
    assert chunks[-1].usage.total_tokens > 0
    assert sum(c.usage is not None for c in chunks) == 1


def test_abort_frees_the_slot(client, server):
    stream = client.completions.create(prompt="Hello", model="m", max_tokens=4096, temperature=1, seed=1,
                                       logit_bias={"2": -100}, stream=True)
    for i, _ in enumerate(stream):
        if i == 2:
            break
    stream.close()
    for _ in range(100):
        if server.get("/v1/status")["running"] == 0:
            return
    pytest.fail("the slot is still busy")


def test_a_bad_parameter_shows_its_message(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.completions.create(prompt="Hello", model="m", top_p=2)
    assert "top_p" in e.value.body["message"]
    assert e.value.body["param"] == "top_p"


def test_two_in_parallel_equal_one_alone(client):
    alone = client.completions.create(prompt="Hello", **COMMON).choices[0].text
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(lambda _: client.completions.create(prompt="Hello", **COMMON).choices[0].text, range(2)))
    assert texts == [alone, alone]


def test_a_seed_repeats(client):
    def text(seed):
        return client.completions.create(prompt="Hello", model="m", max_tokens=12, temperature=1, seed=seed).choices[0].text

    assert text(7) == text(7)
    assert len({text(s) for s in range(8)}) > 1


def test_a_prompt_of_30_kilobytes(client):
    answer = client.completions.create(prompt="abcdefghi " * 3000, model="m", max_tokens=1)
    assert answer.usage.prompt_tokens > 1000


def test_unknown_fields_are_ignored(client):
    answer = client.completions.create(prompt="Hello", extra_body={"zzz": {"a": [1]}, "echo": None}, **COMMON)
    assert answer.choices[0].text is not None


def test_models(client):
    assert client.models.list().data[0].id


def test_one_byte_at_a_time(server):
    """Continue's reader: the stream is cut anywhere, no comment travels with data."""
    body = dict(prompt="Hello", stream=True, max_tokens=8, temperature=0)
    with httpx.stream("POST", server.url + "/v1/completions", json=body) as r:
        text = b"".join(bytes([b]) for part in r.iter_raw() for b in part).decode()
    events = [e for e in text.split("\n\n") if e]
    assert events[-1] == "data: [DONE]"
    assert ": ping" not in text
    assert all(e.startswith(("data: ", ": ")) for e in events)
