"""What application code says of the call it is in. Outside of a traced call each does nothing but warn once."""

import itertools
import threading
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry import trace as trace_api
from opentelemetry.trace import Span
from pydantic_core import from_json

from spangrade import _guard
from spangrade import semconv as s
from spangrade._log import once
from spangrade._values import MAX_NODES, bounded
from spangrade.model.documents import read_documents
from spangrade.tracing import capture, open_documents
from spangrade.tracing.call import TracedCall, current_call, off


def _here(what: str) -> tuple[Span, TracedCall | None] | None:
    """The innermost traced call, else the current span of another instrumentation; None, said once, where there is none."""
    if off():
        return None
    call = current_call()
    span = trace_api.get_current_span()
    if call is not None and call.ended:
        once(f"setter:{what}:ended", f"{what}() was called after its traced call had ended; ignored")
        return None
    if call is not None and call.span.get_span_context() == span.get_span_context():
        return call.span, call
    if not span.is_recording():
        if not span.get_span_context().is_valid:
            once(f"setter:{what}:outside", f"{what}() was called outside of any traced call; ignored")
        return None
    return span, None


def set_input(value: Any) -> None:
    """What was asked, in place of the function's arguments. Any value; text is best."""
    with _guard.guard("set_input"):
        if (here := _here("set_input")) is not None:
            span, call = here
            capture.keep_input(span, call.kind if call else "chain", value)
            if call is not None:
                call.input_set = True


def set_output(value: Any) -> None:
    """What was answered, in place of the return value."""
    with _guard.guard("set_output"):
        if (here := _here("set_output")) is not None:
            span, call = here
            capture.keep_output(span, call.kind if call else "chain", value)
            if call is not None:
                call.output_set = True


def set_retrieval_documents(docs: Any) -> None:
    """The retrieved documents that the answer rests on.

    Texts, dicts (``content``, ``text``, ``page_content`` or ``document``, with ``id``, ``score``, ``metadata`` where
    known), LangChain or LlamaIndex objects, ``(document, score)`` pairs, or lists of these. An empty list says: searched,
    and found nothing. A second call replaces the first. They belong to the innermost traced call and are seen by the
    root's Sample.
    """
    with _guard.guard("set_retrieval_documents"):
        if (here := _here("set_retrieval_documents")) is not None:
            documents = read_documents(docs)
            if documents is not None:
                capture.write_documents(here[0], documents)
                context, attributes = here[0].get_span_context(), getattr(here[0], "attributes", None)
                text = attributes.get(s.RETRIEVAL_DOCUMENTS) if isinstance(attributes, Mapping) else None
                if isinstance(text, str):
                    open_documents.note((context.trace_id, context.span_id), text)


def set_metadata(metadata: Mapping[str, Any] | None = None, /, **more: Any) -> None:
    """The application's own labels for this call (tenant, prompt version), beside those it has; later keys win."""
    with _guard.guard("set_metadata"):
        _merge("set_metadata", s.OI_METADATA, metadata, more)


def set_context(context: Mapping[str, Any] | None = None, /, **more: Any) -> None:
    """Anything else that evaluators should see in ``sample.context``, beside what is there; later keys win."""
    with _guard.guard("set_context"):
        _merge("set_context", s.CONTEXT, context, more)


# Reading an attribute and writing it again is two steps, and a span may be shared by threads.
_merging: Final = threading.RLock()


def _merge(what: str, key: str, given: Mapping[str, Any] | None, more: Mapping[str, Any]) -> None:
    here = _here(what)
    if here is None:
        return
    values = dict(itertools.islice(given.items(), MAX_NODES)) if given is not None else {}
    values.update(more)
    span = here[0]
    with _merging:
        # What the span holds and not what we remember: another instrumentation, or the application, may have said some.
        capture.write_object(span, key, {**_held(span, key), **values})


def _held(span: Span, key: str) -> dict[str, Any]:
    """The JSON object in an attribute; of anything else there, an object that keeps it under the attribute's own word."""
    attributes = getattr(span, "attributes", None)  # not in the API, but every recording span of the SDK shows them
    held = attributes.get(key) if isinstance(attributes, Mapping) else None
    if held is None:
        return {}
    if isinstance(held, str):
        try:
            read = from_json(held)
        except ValueError:
            read = None
        if isinstance(read, dict):
            return read
        if held.startswith("{"):  # cut by a limit on attributes: it cannot be continued
            return {}
    return {key.rpartition(".")[2]: held}


def set_session(id: str, user: str | None = None) -> None:  # noqa: A002 - the word of the conventions
    """The conversation (``session.id``) and the user (``user.id``) that this call belongs to."""
    with _guard.guard("set_session"):
        if (here := _here("set_session")) is not None:
            capture.keep_one(here[0], s.SESSION_ID, bounded(str(id), 256))
            if user is not None:
                capture.keep_one(here[0], s.USER_ID, bounded(str(user), 256))
