"""What an evaluator scores: the end-to-end call (``root``), calls of a kind, calls that a rule on name and attributes picks,
or whole conversations (``session``).

A rule is text, or a mapping that says the same:

| text | mapping |
|---|---|
| ``name = answer*`` | ``{"name": "answer*"}`` |
| ``attributes.http.route = /chat/*`` | ``{"attributes": {"http.route": "/chat/*"}}`` |
| ``kind = agent and name = invoke_agent clerk`` | ``{"kind": "agent", "name": "invoke_agent clerk"}`` |
| ``scope = my.tracer`` | ``{"scope": "my.tracer"}`` |

``*`` stands for any text, ``?`` for one character; case counts. All of a rule's conditions must hold. An attribute that
is a list fits with any of its items. A rule picks among calls (what is no call has nothing to grade) and takes those of
every place and kind, unless it names a kind.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

from spangrade._text import valid
from spangrade.errors import ConfigError

TARGETS: Final = ("root", "llm", "retriever", "tool", "agent", "chain", "embedding", "reranker", "guardrail", "session")
_KINDS: Final = TARGETS[1:-1]
#: What a ``target`` parameter takes.
Target = str | Mapping[str, Any]

_FIELDS: Final = ("name", "kind", "scope")
_ATTRIBUTES: Final = "attributes."
_AND: Final = re.compile(r"\s+and\s+(?=(?:name|kind|scope|attributes\.[^=]+?)\s*=)")
_MAX: Final = 512
_FORMS: Final = "a rule is text such as 'name = answer*' or 'attributes.http.route = /chat/*', or a mapping of the same"


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions, each a place (``name``, ``kind``, ``scope``, ``attributes.<key>``) and a pattern."""

    conditions: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Its one spelling, by which evaluators, counters and scores know it."""
        return " and ".join(f"{place} = {pattern}" for place, pattern in self.conditions)

    @property
    def asks_attributes(self) -> bool:
        """Whether name and kind do not decide it."""
        return any(place not in ("name", "kind") for place, _ in self.conditions)

    @property
    def names_spans(self) -> bool:
        """Whether it says which of the spans of one call is meant."""
        return any(place in ("name", "scope") for place, _ in self.conditions)

    def picks(self, kind: str, name: str, scope: str, attributes: Mapping[str, Any]) -> bool:
        """Whether a call is one of them."""
        said = {"name": name, "kind": kind, "scope": scope}
        return all(
            fnmatchcase(said[place], pattern)
            if place in said
            else _fits(attributes.get(place[len(_ATTRIBUTES) :]), pattern)
            for place, pattern in self.conditions
        )


def _fits(value: Any, pattern: str) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_fits(item, pattern) for item in value[:1_000] if not isinstance(item, (list, tuple)))
    if value is None:
        return False
    return fnmatchcase(str(value).lower() if isinstance(value, bool) else str(value), pattern)


def check_target(target: Any, what: str) -> str:
    """One of `TARGETS`, or a rule in its one spelling; else `ConfigError`."""
    if isinstance(target, str) and target.strip() in TARGETS:
        return target.strip()
    if isinstance(target, Mapping) or (isinstance(target, str) and "=" in target):
        rule = _of_mapping(target, what) if isinstance(target, Mapping) else _of_text(target, what)
        if not _reads_back(rule):
            raise ConfigError(
                f"{what}: target {target!r:.200} cannot be told from another rule in one line of text; leave '=' out of "
                "attributes' names, and what looks like another condition out of patterns ('?' stands for any character)"
            )
        return rule.text
    raise ConfigError(f"{what}: target {target!r} is not one of {', '.join(TARGETS)}, nor a rule; {_FORMS}")


@lru_cache(maxsize=1_024)
def rule_of(target: str) -> Rule | None:
    """The rule that a checked target is; None for one of `TARGETS`."""
    return None if target in TARGETS else _of_text(target, "target")


def _reads_back(rule: Rule) -> bool:
    try:
        return _of_text(rule.text, "target") == rule
    except ConfigError:
        return False


def _of_text(text: str, what: str) -> Rule:
    conditions: list[tuple[str, str]] = []
    for part in _AND.split(text.strip()):
        place, equals, pattern = part.partition("=")
        if not equals:
            raise ConfigError(f"{what}: target {text!r} has no '=' in {part!r}; {_FORMS}")
        conditions.append((place.strip(), pattern.strip()))
    return _checked(conditions, what)


def _of_mapping(given: Mapping[Any, Any], what: str) -> Rule:
    conditions: list[tuple[Any, Any]] = []
    for place, pattern in given.items():
        if place == "attributes" and isinstance(pattern, Mapping):
            conditions += [(f"{_ATTRIBUTES}{key}", item) for key, item in pattern.items()]
        else:
            conditions.append((place, pattern))
    return _checked(conditions, what)


def _checked(conditions: list[tuple[Any, Any]], what: str) -> Rule:
    if not conditions:
        raise ConfigError(f"{what}: target {{}} is a rule without a condition; {_FORMS}")
    found: dict[str, str] = {}
    for place, pattern in conditions:
        if not isinstance(place, str) or not (
            place in _FIELDS or (place.startswith(_ATTRIBUTES) and place != _ATTRIBUTES)
        ):
            raise ConfigError(
                f"{what}: target has no {place!r}; there are name, kind, scope, and attributes.<key> for an attribute"
            )
        if isinstance(pattern, bool):
            pattern = str(pattern).lower()  # noqa: PLW2901 - as an attribute is compared
        if isinstance(pattern, (int, float)):
            pattern = str(pattern)  # noqa: PLW2901
        if not isinstance(pattern, str) or not pattern.strip() or len(pattern) > _MAX:
            raise ConfigError(
                f"{what}: target {place} {pattern!r:.80} is no pattern; give text of at most {_MAX} characters, "
                "such as 'answer*'"
            )
        if place in found:
            raise ConfigError(f"{what}: target names {place} twice; a rule has one pattern for each")
        if place == "kind" and pattern.strip() not in _KINDS:
            raise ConfigError(f"{what}: target kind {pattern!r} is not one of {', '.join(_KINDS)}")
        found[place] = valid(pattern.strip())
    return Rule(tuple(sorted(found.items())))
