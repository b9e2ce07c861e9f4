"""openai-python sends pictures and sound in extra_body; the answers are the recorded ones."""
import base64
import json

import openai
import pytest
from conftest import RECORDED, Server

WANTED = [("gemma3", "a", "images"), ("gemma3", "ab", "images"), ("qwen2audio", "a", "audios")]


def recorded(family, name):
    cases = json.loads((RECORDED / "expected" / f"{family}.json").read_text())["cases"]
    return next(c for c in cases if c["name"] == name)


def seeing(family):
    models = RECORDED / "models"
    return Server("--mmproj", str(models / f"{family}-mmproj.gguf"), "--context", "2048", model=models / f"{family}-text.gguf")


@pytest.mark.parametrize("family, name, field", WANTED)
def test_media_in_extra_body(family, name, field):
    case = recorded(family, name)
    files = [base64.b64encode((RECORDED / "media" / f).read_bytes()).decode() for f in case["media"]]
    server = seeing(family)
    try:
        with openai.OpenAI(base_url=server.url + "/v1", api_key="any-key", max_retries=0) as client:
            answer = client.completions.create(model="any", prompt=case["prompt"], max_tokens=len(case["tokens"]),
                                               temperature=0, extra_body={field: files})
            assert answer.usage.prompt_tokens == case["prompt_tokens"]
            want = server.http.post("/v1/detokenize", json={"tokens": case["tokens"]}).json()["text"]
            assert answer.choices[0].text and want.startswith(answer.choices[0].text)
            with pytest.raises(openai.BadRequestError) as e:
                client.completions.create(model="any", prompt=case["prompt"] + "<__media__>", extra_body={field: files})
            assert e.value.code == "media_count_mismatch"
    finally:
        server.close()


def test_media_for_a_model_without_an_encoder(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any-key", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError) as e:
            picture = base64.b64encode((RECORDED / "media" / "img-a.png").read_bytes()).decode()
            client.completions.create(model="any", prompt="Hello", extra_body={"images": [picture]})
    assert (e.value.code, e.value.param) == ("modality_not_supported", "images")
