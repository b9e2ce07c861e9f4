"""One way to call every client: complete() and stream(), each as its users do.

A client's `cannot` names the scripts that its own interface has no words for.
"""
import dataclasses

import litellm
import llm
import openai
from langchain_openai import OpenAI as LangChain


@dataclasses.dataclass
class Answer:
    texts: list
    total_tokens: int
    logprobs: dict = None  # of the first choice, in the form of the OpenAI API


class OpenAIPython:
    cannot = set()
    bad = {"top_p": 2}

    def __init__(self, base, folder):
        self.client = openai.OpenAI(base_url=base, api_key="any-key", max_retries=0)

    def complete(self, prompt, **params):
        answer = self.client.completions.create(model="any", prompt=prompt, **params)
        lp = answer.choices[0].logprobs
        assert [c.index for c in answer.choices] == list(range(len(answer.choices)))
        assert {c.finish_reason for c in answer.choices} <= {"stop", "length"}
        return Answer([c.text for c in answer.choices], answer.usage.total_tokens, lp and lp.model_dump())

    def stream(self, prompt, usage=None, **params):
        if usage is not None:
            params["stream_options"] = {"include_usage": True}
        with self.client.completions.create(model="any", prompt=prompt, stream=True, **params) as chunks:
            for chunk in chunks:
                if chunk.usage and usage is not None:
                    usage.append(chunk.usage.total_tokens)
                for choice in chunk.choices:
                    yield choice.text


class LangChainOpenAI:
    cannot = {"usage chunk"}  # it drops the usage of a stream; test_langchain.py shows that it survives it
    bad = {"top_p": 2}

    def __init__(self, base, folder):
        self.base = base

    def model(self, params):
        params = dict(params)
        stop = params.pop("stop", None)
        return LangChain(base_url=self.base, api_key="any-key", model="any", max_retries=0, **params), stop and [stop]

    def complete(self, prompt, **params):
        model, stop = self.model(params)
        result = model.generate([prompt] if isinstance(prompt, str) else prompt, stop=stop)
        first = result.generations[0][0]
        return Answer([g[0].text for g in result.generations], result.llm_output["token_usage"]["total_tokens"],
                      first.generation_info["logprobs"])

    def stream(self, prompt, **params):
        model, stop = self.model(params)
        yield from model.stream(prompt, stop=stop)


class LiteLLM:
    cannot = set()
    bad = {"top_p": 2}

    def __init__(self, base, folder):
        self.common = dict(model="text-completion-openai/any", api_base=base, api_key="any-key", num_retries=0,
                           max_retries=0)

    def complete(self, prompt, **params):
        answer = litellm.text_completion(prompt=prompt, **self.common, **params)
        lp = answer.choices[0].logprobs
        return Answer([c.text for c in answer.choices], answer.usage.total_tokens, lp and dict(lp))

    def stream(self, prompt, usage=None, **params):
        if usage is not None:
            params["stream_options"] = {"include_usage": True}
        for chunk in litellm.text_completion(prompt=prompt, stream=True, **self.common, **params):
            if getattr(chunk, "usage", None) and usage is not None:
                usage.append(chunk.usage.total_tokens)
            for choice in chunk.choices:
                yield choice.text or ""


class SimonLLM:
    cannot = {"array prompt", "batch of two"}
    bad = {"max_tokens": -1}  # it checks top_p by itself

    def __init__(self, base, folder):
        write_llm_config(folder, base)
        self.client = llm.get_model("ganglion")

    def complete(self, prompt, **params):
        response = self.client.prompt(prompt, stream=False, **params)
        text = response.text()
        raw = response.response_json
        return Answer([text], raw["usage"]["total_tokens"], raw["choices"][0].get("logprobs"))

    def stream(self, prompt, usage=None, **params):
        response = self.client.prompt(prompt, stream=True, **params)
        yield from response
        if usage is not None:
            usage.append(response.response_json["usage"]["total_tokens"])


def write_llm_config(folder, base):
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: ganglion\n  model_name: any\n  api_base: {base}\n  completion: true\n")


CLIENTS = {"openai": OpenAIPython, "langchain": LangChainOpenAI, "litellm": LiteLLM, "llm": SimonLLM}
