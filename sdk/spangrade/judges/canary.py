"""Canaries: samples whose verdict is known, graded now and then beside production traffic, so that a judge that drifts, or
was changed behind its name, is seen without anybody labelling anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from spangrade.errors import ConfigError
from spangrade.model.sample import Sample, is_empty
from spangrade.model.score import FAIL, PASS

DEFAULT_RATE: Final = 0.01
_TEXTS: Final = ("input", "output", "expected", "documents", "metadata")


@dataclass(frozen=True, slots=True)
class Canary:
    """A sample, and whether it passes."""

    sample: Sample
    passes: bool


def canaries(given: Any, what: str) -> tuple[Canary, ...]:
    """Of dicts such as ``{"input": ..., "output": ..., "verdict": "fail"}``, with ``expected``, ``documents``, ``metadata``.

    Raises:
        ConfigError: one that has no output or no verdict, or a key that is none of these.
    """
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise ConfigError(f"{what}: canaries {given!r} is not a list of dicts such as {_like()}")
    return tuple(_canary(one, f"{what}: canary {n}") for n, one in enumerate(given, 1))


def _canary(given: Any, what: str) -> Canary:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{what} is not a dict such as {_like()}")
    for key in given:
        if key not in (*_TEXTS, "verdict"):
            raise ConfigError(f"{what}: key {key!r} is not one of {', '.join((*_TEXTS, 'verdict'))}")
    if is_empty(given.get("output")):
        raise ConfigError(f"{what} has no output; {_like()}")
    if given.get("verdict") not in (PASS, FAIL):
        raise ConfigError(f"{what}: verdict {given.get('verdict')!r} is not 'pass' or 'fail'")
    documents = [d if isinstance(d, Mapping) else {"content": d} for d in given.get("documents") or ()]
    sample = Sample(
        given.get("input"),
        given["output"],
        given.get("expected"),
        cast("Any", documents),
        metadata=dict(given.get("metadata") or {}),
    )
    return Canary(sample, given["verdict"] == PASS)


def _like() -> str:
    return "{'input': '...', 'output': '...', 'verdict': 'fail'}"
