"""What LangChain does with the usage of a stream: it drops it, and must survive it."""
from langchain_openai import OpenAI


def test_a_usage_chunk_does_no_harm(server, reference):
    model = OpenAI(base_url=server.url + "/v1", api_key="any-key", model="any", max_tokens=24, temperature=0,
                   model_kwargs={"stream_options": {"include_usage": True}})
    assert "".join(model.stream("Hello")) == reference.hello
