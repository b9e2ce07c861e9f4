"""Generated requests against the document that the server itself gives out: no
answer is a failure of the server, and every answer is one the document tells of."""
import collections
import json

import hypothesis
import jsonschema_rs
import pytest
import schemathesis
from conftest import Server
from proxy import Proxy
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup

load_all_checks()
CONFORMANCE = [CHECKS.get_one(name) for name in (
    "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection")]
SCHEMA = CHECKS.get_one("response_schema_conformance")
BUSY = {"queue_full", "no_model"}


def settings(cases):
    return hypothesis.settings(max_examples=cases, derandomize=True, database=None, deadline=None,
                               phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
                               suppress_health_check=list(hypothesis.HealthCheck))


@pytest.fixture(scope="module")
def small():
    """A server with room for few tokens, so that 500 answers take little time."""
    s = Server("--context", "64", "--max-tokens", "4")
    try:
        yield s
    finally:
        s.close()


@pytest.fixture(scope="module")
def document(small):
    loaded = schemathesis.openapi.from_url(small.url + "/openapi.json", timeout=120)
    loaded.config.max_stream_events = 10_000  # read every stream to its end
    loaded.config.request_timeout = 120  # s; a busy machine may take longer than its 10
    return loaded


@pytest.fixture(scope="module")
def chunk(document):
    """Validates the data of one event of a stream."""
    return jsonschema_rs.Draft202012Validator(
        {"$ref": "#/components/schemas/CompletionsResponse", "components": document.raw_schema["components"]})


def check_stream(answer, chunk):
    """The document of a stream in OpenAPI 3.1 is a string: its events are read here."""
    events = [e for e in answer.content.decode().split("\n\n") if not e.startswith(":")]
    assert events[-2:] == ["data: [DONE]", ""]
    for event in events[:-2]:
        assert event.startswith("data: ")
        chunk.validate(json.loads(event.removeprefix("data: ")))


def streamed(case):
    case.body["stream"] = True
    return case


def exercise(operation, cases, chunk, *more, base=None):
    """Sends requests that the document allows and others that it does not, and
    returns how often each status came back."""
    allowed = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    requests = hypothesis.strategies.one_of(
        allowed, operation.as_strategy(generation_mode=GenerationMode.NEGATIVE), *(allowed.map(m) for m in more))
    seen = collections.Counter()

    @settings(cases)
    @hypothesis.given(requests)
    def run(case):
        answer = case.call(base_url=base)
        seen[answer.status_code] += 1
        if answer.status_code >= 500:
            assert answer.status_code == 503, answer.text
            if not operation.path.startswith("/health"):
                assert answer.json()["error"]["code"] in BUSY
        if answer.headers["content-type"] == ["text/event-stream"]:
            seen["stream"] += 1
            check_stream(answer, chunk)
            case.validate_response(answer, checks=[c for c in CONFORMANCE if c is not SCHEMA])
        else:
            case.validate_response(answer, checks=CONFORMANCE)

    run()
    return seen


def test_completions(document, chunk):
    seen = exercise(document["/v1/completions"]["POST"], 500, chunk, streamed)
    # All ways of the answer were gone often enough to mean something.
    assert min(seen[200], seen[400], seen["stream"]) >= 20, seen


def test_other_routes(document, chunk):
    operations = [result.ok() for result in document.get_all_operations()]
    others = [o for o in operations if o.path != "/v1/completions"]
    assert len(others) > 10
    for operation in others:
        assert exercise(operation, 20, chunk), operation.path


def test_an_answer_that_is_not_as_told_is_noticed(small, document, chunk):
    def misspelt(body):
        return (piece.replace(b'"finish_reason"', b'"finish-reason"').replace(b'"message"', b'"massage"') for piece in body)

    with Proxy(small.url, misspelt) as proxy:
        with pytest.raises((FailureGroup, jsonschema_rs.ValidationError), match="(finish_reason|message)"):
            exercise(document["/v1/completions"]["POST"], 20, chunk, base=proxy.url)
