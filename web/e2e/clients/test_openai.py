"""What openai-python asks for beyond the twelve scripts."""
import openai
import pytest
from conftest import NO_END, Server


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any-key", max_retries=0) as c:
        yield c


def test_models(client, server):
    assert client.models.list().data[0].id == server.get("/health")["model"]


def test_prompts_of_token_ids(client, server, reference):
    ids = [t["id"] for t in server.http.post("/v1/tokenize", json={"text": "Hello"}).json()["tokens"]]
    answer = client.completions.create(model="any", prompt=[ids], max_tokens=24, temperature=0)
    assert answer.choices[0].text == reference.hello
    assert answer.usage.prompt_tokens == len(ids)


def test_a_flat_prompt_of_token_ids_is_told_how_to_be_written(client):
    """The contract calls for 400 on [1]; the answer shows the form that is taken."""
    with pytest.raises(openai.BadRequestError, match=r"\[\[1,2,3\]\]") as e:
        client.completions.create(model="any", prompt=[1, 2, 3])
    assert e.value.param == "prompt[0]"


def test_unknown_fields_and_nulls_have_no_effect(client, reference):
    more = {"zzz": {"a": [1]}, "echo": None, "best_of": None, "suffix": None, "user": "u", "stop": None, "logprobs": None}
    answer = client.completions.create(model="any", prompt="Hello", max_tokens=24, temperature=0, extra_body=more)
    assert answer.choices[0].text == reference.hello


def test_two_choices_of_one_prompt(client):
    answer = client.completions.create(model="any", prompt="Hello", n=2, seed=7, max_tokens=24, temperature=1)
    one, two = (c.text for c in answer.choices)
    assert one != two
    again = client.completions.create(model="any", prompt="Hello", seed=8, max_tokens=24, temperature=1)
    assert again.choices[0].text == two  # seeds count up from the first


def test_a_busy_server_is_an_error_that_says_when_to_come_back():
    """The libraries try again on 503, and wait as long as Retry-After says."""
    other = Server("--slots", "1", "--queue", "1", "--context", "131072")
    try:
        busy = openai.OpenAI(base_url=other.url + "/v1", api_key="any-key", max_retries=0)
        ask = dict(model="any", prompt="Hello", max_tokens=100_000, logit_bias=NO_END, stream=True)
        with busy.completions.create(**ask) as running:
            assert next(iter(running))
            with pytest.raises(openai.APIStatusError) as e:
                busy.completions.create(**{**ask, "n": 3})
        assert (e.value.status_code, e.value.code) == (503, "queue_full")
        assert int(e.value.response.headers["Retry-After"]) >= 1
        busy.close()
    finally:
        other.close()
