"""HTTP responses with a body that is made while it is sent: FastAPI's and Starlette's `StreamingResponse` and what derives
from it, Flask's `Response` over a generator, Django's `StreamingHttpResponse`.

The response stays the object that it is; in the place of its body stands one that is followed. Known by what they have
and not by their names, so that nothing need be imported and subclasses are the same.
"""

from typing import Any

from spangrade.tracing.call import TracedCall
from spangrade.tracing.following import Following
from spangrade.tracing.iterators import AsyncItems, standing_for
from spangrade.tracing.streamlike import found, has_step


def follow(response: Any, call: TracedCall) -> bool:
    """Follow its body to its end; False, and nothing done, if that is not a stream."""
    name = _place(response)
    if name is None:
        return False
    body = getattr(response, name)
    kind = type(body)
    if not any(has_step(kind, step) for step in ("__next__", "__anext__", "__aiter__")):
        return False
    following = Following(call, decode=True)
    standing = standing_for(body, following)
    setattr(response, name, AsyncItems(body, following) if standing is body else standing)
    return True


def _place(response: Any) -> str | None:
    """The attribute that holds the body."""
    kind = type(response)
    content = found(kind, "streaming_content")
    if type(content) is property and content.fset is not None:
        return "streaming_content"  # Django's, which says of this one that middleware may put another in its place
    try:
        own = object.__getattribute__(response, "__dict__")
    except AttributeError:
        return None
    if type(own) is not dict:
        return None
    if "body_iterator" in own:
        return "body_iterator"
    return "response" if "response" in own and found(kind, "iter_encoded") is not None else None
