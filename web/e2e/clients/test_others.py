"""LangChain, LiteLLM and simonw's llm as they are, against the real binary."""
import os
import subprocess
import sys

import litellm
import openai
import pytest
from langchain_openai import OpenAI


@pytest.fixture(scope="module")
def reference(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="x")
    return client.completions.create(model="m", prompt="Hello", max_tokens=8, temperature=0).choices[0].text


@pytest.fixture(scope="module")
def chain(server):
    return OpenAI(base_url=server.url + "/v1", api_key="x", model="m", max_tokens=8, temperature=0)


def test_langchain_plain(chain, reference):
    assert chain.invoke("Hello") == reference


def test_langchain_stream(chain, reference):
    assert "".join(chain.stream("Hello")) == reference


def test_langchain_batch_of_two(chain, reference):
    result = chain.generate(["Hello", "World"])
    assert result.generations[0][0].text == reference
    assert len(result.generations) == 2
    assert result.llm_output["token_usage"]["total_tokens"] > 0


def test_langchain_stop(chain, reference):
    assert chain.invoke("Hello", stop=[reference[3]]) == reference.split(reference[3])[0]


def test_langchain_error_is_visible(server):
    with pytest.raises(openai.BadRequestError, match="top_p"):
        OpenAI(base_url=server.url + "/v1", api_key="x", model="m", top_p=3).invoke("Hello")


def lite(server, **more):
    return litellm.text_completion(model="text-completion-openai/m", prompt="Hello", api_base=server.url + "/v1",
                                   api_key="x", max_tokens=8, temperature=0, **more)


def test_litellm_plain(server, reference):
    assert lite(server).choices[0].text == reference


def test_litellm_stream(server, reference):
    assert "".join(c.choices[0].text or "" for c in lite(server, stream=True)) == reference


def test_litellm_stop_and_seed(server, reference):
    assert lite(server, stop=reference[3], seed=1).choices[0].text == reference.split(reference[3])[0]


def test_litellm_error_is_visible(server):
    with pytest.raises(Exception, match="top_p"):
        lite(server, top_p=3)


@pytest.fixture(scope="module")
def llm_env(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llm")
    (folder / "extra-openai-models.yaml").write_text(
        "- model_id: ganglion\n  model_name: m\n"
        f"  api_base: {server.url}/v1\n  completion: true\n")
    return {**os.environ, "LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "x"}


@pytest.mark.parametrize("flags", [[], ["--no-stream"]], ids=["stream", "plain"])
def test_llm(llm_env, reference, flags):
    out = subprocess.run([sys.executable, "-m", "llm", "-m", "ganglion", *flags, "-o", "max_tokens", "8",
                          "-o", "temperature", "0", "Hello"], env=llm_env, capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    assert out.stdout.rstrip("\n") == reference.rstrip("\n")
