"""What a dialect is, and what all of them share.

A dialect is a module of this package with the members of `Dialect`; it is entered once, in ``DIALECTS`` of
``spangrade.samples.dialects``. Everything else (which spans are calls, which keys hold content, how readings merge)
follows from what it declares.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.reading import Reading

#: A kind in `KindMark` that says: this span is known, and is no call (a rendered prompt, a placeholder span).
NOT_A_CALL: Final = "not_a_call"
EVALUATOR: Final = "evaluator"


@dataclass(frozen=True, slots=True)
class KindMark:
    """An attribute that tells a span's kind.

    Attributes:
        values: attribute value (in lower case) → kind of call.
        default: the kind for any other value; None: the key says nothing then.
        present: the kind for any value at all, used only when no other mark knows the span.
        prefixes: beginnings of values → kind, asked after ``values``.
        suffixes: endings of values → kind, asked last.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None
    present: str | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    suffixes: tuple[tuple[str, str], ...] = ()


class Dialect(Protocol):
    """One way of writing calls into spans.

    Attributes:
        name: as shown by ``spangrade explain``.
        capture: what switches the capture of content on in the libraries that write this dialect, as a sentence without
            its full stop; shown where a span of the dialect has no content. Libraries that differ are named in it.
        kind_marks: attribute key → what its value says of the span's kind. Asked for every ended span.
        content_keys: attribute keys that hold user content; `content_prefixes`: beginnings of such keys.
    """

    @property
    def name(self) -> str: ...

    @property
    def capture(self) -> str: ...

    @property
    def kind_marks(self) -> Mapping[str, KindMark]: ...

    @property
    def content_keys(self) -> frozenset[str]: ...

    @property
    def content_prefixes(self) -> tuple[str, ...]: ...

    def claims(self, attributes: Mapping[str, Any]) -> bool:
        """Whether the span may hold something of this dialect, by its keys alone: the answer is kept for spans with the same
        keys."""
        ...

    def read(self, span: SpanData) -> Reading | None:
        """What the span says in this dialect; None where, looked at closely, it says nothing in it. Asked only of calls,
        and only when `claims` holds."""
        ...


def session_id(attributes: Mapping[str, Any]) -> str | None:
    """``session.id``, else the conversation id of the GenAI conventions."""
    return scalars.first_name(attributes, semconv.SESSION_ID, semconv.CONVERSATION_ID)


def user_id(attributes: Mapping[str, Any]) -> str | None:
    """``user.id``."""
    return scalars.first_name(attributes, semconv.USER_ID)
