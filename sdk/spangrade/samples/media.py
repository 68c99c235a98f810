"""Images and files inside of what others wrote on a span: named before anything is read, so that no evaluator gets them.

A part that says what it is becomes ``[image]`` in any case (see `parts`). But media also stand in the middle of a text, in
a tool's result, in a request that is kept as it was sent; there a judge would be shown, and paid for, megabytes of base64.
It is done on the whole attribute, before anything of it is cut: a name says the length and the hash of all of it. The
span itself stays as its maker made it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from spangrade import _media
from spangrade.model.span import EventData
from spangrade.samples.jsontext import loads, looks_json

_MAX_DEPTH: Final = 16


def named(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """``attributes`` with the media in them named; the same object where there are none, which is the usual case."""
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        kind = type(value)
        if kind is str:
            if len(value) >= _media.MIN_URL and _media.suspected(value):
                found[key] = _text(value)
        elif kind in (tuple, list, dict):
            plain = _within(value, 0)
            if plain is not value:
                found[key] = plain
    return {**attributes, **found} if found else attributes


def named_in(events: Sequence[EventData]) -> Sequence[EventData]:
    """The same for the attributes of events."""
    found = [named(event.attributes) for event in events]
    if all(new is event.attributes for new, event in zip(found, events, strict=True)):
        return events
    return [replace(event, attributes=new) for new, event in zip(found, events, strict=True)]


def _text(text: str) -> str:
    if "\\/" in text and looks_json(text):  # PHP's writer escapes slashes, which base64 is full of
        try:
            text = json.dumps(loads(text))  # in ASCII, so that half characters stay escapes
        except (ValueError, RecursionError):
            pass  # cut, or no JSON: as it is then
    return _media.replace(text)


def _within(value: Any, depth: int) -> Any:
    """A structured value, as newer SDKs and OTLP have them; the same object where nothing was found."""
    if type(value) is str:
        return _text(value) if len(value) >= _media.MIN_URL and _media.suspected(value) else value
    if depth < _MAX_DEPTH and type(value) in (tuple, list):
        items = [_within(item, depth + 1) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else tuple(items)
    if depth < _MAX_DEPTH and type(value) is dict:
        pairs = {key: _within(item, depth + 1) for key, item in value.items()}
        return value if all(new is value[key] for key, new in pairs.items()) else pairs
    return value
