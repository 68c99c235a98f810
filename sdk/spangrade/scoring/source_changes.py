"""A metric whose source changed while its version did not is said once: scores of two functions would be compared as those
of one. In one process that is a notebook's cell, or a module that was loaded again; across runs it is the experiments' to
tell, which keep the same hash beside a metric's scores."""

from typing import Any

from spangrade._log import once

_seen: dict[tuple[str, str, str], str] = {}  # what was configured under a name, from where → its source


def look_at(evaluator: Any) -> None:
    """Remember an evaluator's source; warn when the same one had another before."""
    source = getattr(evaluator, "source_hash", None)
    module, name = getattr(evaluator, "__module__", None), getattr(evaluator, "__qualname__", None)
    if not isinstance(source, str) or not isinstance(module, str) or not isinstance(name, str):
        return
    key = evaluator.info.key
    place = (key, module, name)
    if _seen.setdefault(place, source) != source:
        _seen[place] = source
        event = (
            "a metric's source has changed while its version has not, so its scores count as those of the same metric; "
            "give it another version"
        )
        once(f"source:{key}", event, evaluator=evaluator.info.name)
