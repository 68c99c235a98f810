"""LangChain4j on Quarkus, from its documentation and sources (docs.quarkiverse.io, quarkus-langchain4j/dev/observability); no
run of it was tried.

A chat model's span has all its messages as one text, without roles: ``gen_ai.prompt`` and ``gen_ai.completion``, which were
``gen_ai.content.prompt`` and ``gen_ai.content.completion`` until 1.0. The rest, tools too, are the GenAI conventions'. Spring
AI's applications put content on spans under the same two names, as text or as a list of texts.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import KindMark
from spangrade.samples.exchanges import of_payloads
from spangrade.samples.jsontext import Items, read_loose
from spangrade.samples.payloads import Payload, read_request, read_response
from spangrade.samples.reading import Reading
from spangrade.samples.turns import read_turns

_PROMPTS: Final = ("gen_ai.prompt", "gen_ai.content.prompt")
_COMPLETIONS: Final = ("gen_ai.completion", "gen_ai.content.completion")

name: Final = "langchain4j"
capture: Final = (
    "set quarkus.langchain4j.tracing.include-prompt=true, include-completion=true, include-tool-arguments=true and"
    " include-tool-result=true"
)
kind_marks: Final[Mapping[str, KindMark]] = {key: KindMark(present="llm") for key in (*_PROMPTS, *_COMPLETIONS)}
content_keys: Final = frozenset(kind_marks)
content_prefixes: Final[tuple[str, ...]] = ()
_LANGSMITH: Final = "langsmith.span.kind"  # writes whole runs under these names


def claims(attributes: Mapping[str, Any]) -> bool:
    return not content_keys.isdisjoint(attributes) and _LANGSMITH not in attributes


def read(span: SpanData) -> Reading:
    given, result = _held(span.attributes, _PROMPTS), _held(span.attributes, _COMPLETIONS)
    (parsed_given, given_cut), (parsed_result, result_cut) = read_loose(given), read_loose(result)
    request, response = read_request(parsed_given), read_response(parsed_result)
    request = request if request.known else _texts(given, parsed_given, "user")
    response = response if response.known else _texts(result, parsed_result, "assistant")
    return of_payloads(name, parsed_given, parsed_result, request, response, truncated=given_cut or result_cut)


def _held(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def _texts(held: Any, parsed: Any, role: str) -> Payload:
    """A list of texts, or one text, which an answer that is JSON is, too; anything else is said as it is."""
    many = isinstance(parsed, (list, tuple)) and parsed and all(isinstance(one, str) for one in parsed)
    if not many and not isinstance(held, str):
        return Payload()
    texts = list(parsed) if many else [held]
    return Payload(read_turns(Items([scalars.text(one) for one in texts]), role), known=True)
