"""The seam between whatever grades a sample and the pipeline that runs it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from spangrade._text import valid
from spangrade.errors import ConfigError
from spangrade.model.sample import FrozenDict, Sample
from spangrade.model.score import Graded, Rule
from spangrade.model.target import TARGETS, Target, check_target

__all__ = [
    "TARGETS", "Evaluator", "EvaluatorInfo", "Failure", "Kind", "Target", "Verdict", "check_name", "check_target", "hash_config",
]  # fmt: skip

Kind = Literal["code", "llm", "human"]


@dataclass(frozen=True, slots=True)
class EvaluatorInfo:
    """Who gives a score. ``key`` tells two evaluators apart everywhere, in counters and on the wire. ``target``: as
    `check_target` gives it."""

    name: str
    kind: Kind = "code"
    version: str | None = None
    config_hash: str = ""
    requires: tuple[str, ...] = ()
    threshold: float | None = None
    lower_is_better: bool = False
    verdict: bool = True
    target: str = "root"
    key: str = field(init=False, repr=False, compare=False, default="")
    """``name@confighash``; made once, since every count of every pair asks for it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.name}@{self.config_hash}" if self.config_hash else self.name)


@dataclass(frozen=True, slots=True)
class Failure:
    """One of an evaluator's several scores that could not be given while others may be there.

    ``name``: the score's name on the wire, as `Graded` has it (``metric.key``). ``kind``: what becomes ``error.type``, few
    different ones (an exception's class name). ``message``: why, for people. ``path``, ``rule``: as of `Graded`.
    """

    name: str
    kind: str
    message: str = ""
    path: str | None = None
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an evaluator returns to the pipeline: one or more scores, and what is known of how they came about.

    ``details`` holds wire attributes (``spangrade.judge.model`` and the like). ``failures``: scores that failed. Beside
    scores the pair is *scored*, and each failure leaves as an error of its own name; alone they make it an *error*.
    """

    scores: tuple[Graded, ...]
    details: Mapping[str, Any] = field(default_factory=FrozenDict)
    failures: tuple[Failure, ...] = ()


@runtime_checkable
class Evaluator(Protocol):
    """A metric or judge. `evaluate` runs on a thread of ours and may block up to ``timeout`` seconds.

    It returns a `Verdict` (``is_async``: an awaitable of one, run on our event loop), or raises `Skip` for nothing to
    say, `JudgeError` with its kind, or anything else for an error.
    """

    @property
    def info(self) -> EvaluatorInfo: ...

    @property
    def timeout(self) -> float: ...

    @property
    def is_async(self) -> bool: ...

    def evaluate(self, sample: Sample) -> Any: ...


def hash_config(config: Mapping[str, Any]) -> str:
    """16 hex digits that change when, and only when, the configuration does (key order does not matter)."""
    text = json.dumps(config, sort_keys=True, default=str, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def check_name(name: Any, what: str) -> str:
    """A usable evaluator name, with half characters replaced, or `ConfigError`."""
    if not isinstance(name, str):
        raise ConfigError(f"{what} name {name!r} is no text; give it a short name such as 'overlap'")
    if not name.strip():
        raise ConfigError(f"{what} name {name!r} is empty; give it a short name such as 'overlap'")
    if len(name) > 128:
        raise ConfigError(f"{what} name {name[:40]!r}... is {len(name)} characters long; at most 128")
    return valid(name.strip())
