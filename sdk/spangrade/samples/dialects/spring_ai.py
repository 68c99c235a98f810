"""Spring AI 1 and 2, from its documentation (docs.spring.io, reference/observability); no run of it was tried.

Its chat client's and advisors' spans carry no content, and ``gen_ai.operation.name`` ``framework`` of them is no agent; models,
tokens and reasons of a chat model's stand where the GenAI conventions have them. Here: tools and vector stores. Prompt and
completion go to the application's log by default; where a filter puts them on the span they are `langchain4j`'s.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import executed
from spangrade.samples.dialects.base import NOT_A_CALL, KindMark, session_id, user_id
from spangrade.samples.jsontext import read_items, read_loose
from spangrade.samples.reading import Reading

KIND: Final = "spring.ai.kind"
CONVERSATION: Final = "spring.ai.chat.client.conversation.id"
TOOL: Final = "spring.ai.tool.definition.name"
ARGUMENTS: Final = "spring.ai.tool.call.arguments"
RESULT: Final = "spring.ai.tool.call.result"
QUERY: Final = "db.vector.query.content"
DOCUMENTS: Final = "db.vector.query.response.documents"

name: Final = "spring_ai"
capture: Final = (
    "for tools set spring.ai.tools.observations.include-content=true; prompts and completions go to the log only"
    " (spring.ai.chat.observations.log-prompt, log-completion), so add an ObservationFilter that writes gen_ai.prompt and"
    " gen_ai.completion as high cardinality key values"
)
kind_marks: Final[Mapping[str, KindMark]] = {
    # A vector store's spans are of additions and deletions, too: a search is known by its query.
    KIND: KindMark({"chat_client": "chain", "advisor": NOT_A_CALL, "tool_call": "tool"}),
    QUERY: KindMark(present="retriever"),
}
content_keys: Final = frozenset(
    {
        ARGUMENTS,
        RESULT,
        QUERY,
        DOCUMENTS,
        "spring.ai.chat.client.user.text",
        "spring.ai.chat.client.user.params",
        "spring.ai.chat.client.system.text",
        "spring.ai.chat.client.system.params",
    }
)
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset({*kind_marks, *content_keys, CONVERSATION})


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    reading = Reading(
        name,
        session_id=session_id(attributes) or scalars.first_name(attributes, CONVERSATION),
        user_id=user_id(attributes),
    )
    if scalars.first_name(attributes, KIND) == "tool_call":
        reading.kind = "tool"
        reading.input, given_cut = read_loose(attributes.get(ARGUMENTS))
        reading.output, result_cut = read_loose(attributes.get(RESULT))
        reading.tool_calls = executed(scalars.first_name(attributes, TOOL), reading.input)
        reading.truncated = given_cut or result_cut
    elif QUERY in attributes:
        reading.kind = "retriever"
        reading.query = reading.input = scalars.text(attributes[QUERY])
        if DOCUMENTS in attributes:
            found = read_items(attributes[DOCUMENTS])
            reading.documents, reading.truncated = read_documents(found.items), found.truncated
    else:  # until 1.0 the chat client told what it was given
        reading.kind = "chain"
        reading.input = scalars.text(attributes.get("spring.ai.chat.client.user.text"))
        reading.system = scalars.text(attributes.get("spring.ai.chat.client.system.text"))
    return reading
