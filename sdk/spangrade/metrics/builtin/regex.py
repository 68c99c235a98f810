"""`regex`: whether the answer matches a pattern, or must not.

What it measures: 1 when the rule holds, else 0. The pattern is searched for anywhere (``^`` and ``$`` anchor it, flag ``m``
does so at each line); a structured value is searched as its JSON text.

What it does not: anything beyond the characters. For words and phrases `keywords` is easier to get right.

A pattern that would search for ever is stopped after a second and counts as an error, never as a match; this needs the package
``regex`` (``pip install "spangrade[rules]"``), whose syntax is Python's with additions. Without it Python's own engine is used,
which nothing can stop.

Source: Python's ``re`` syntax. No threshold: 0 fails, 1 passes.
"""

import json
from typing import Any

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.options import field_name, one_of
from spangrade.metrics.builtin.searching import Pattern, TookTooLong
from spangrade.metrics.builtin.text import quoted
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample, is_empty
from spangrade.model.score import ReturnError, Score, Skip


def regex(
    pattern: str = "",
    *,
    must: str = "match",
    flags: Any = 0,
    field: str = "output",
    name: str = "regex",
    target: str = "root",
) -> LocalMetric:
    """A metric that is 1 when ``field`` (default: the answer) matches the pattern, or with ``must="not_match"`` when it does not.

    Args:
        pattern: in Python's syntax.
        must: ``match`` or ``not_match``.
        flags: those of ``re``, or for a configuration file letters (``"im"``) or names (``["IGNORECASE"]``).
        field: the Sample's field to look at.
        name: of the score; give each rule its own.
        target: what is scored, as in `LocalMetric`.

    Raises:
        ConfigError: no pattern, one that does not compile, or an option that is unknown.
    """
    what = f"metric {name!r}"
    if not pattern:
        raise ConfigError(f"{what}: give the pattern, as in regex(r'\\d+') or config: {{pattern: '\\d+'}}")
    compiled = Pattern(pattern, flags, what)
    wanted = one_of(what, "must", must, ("match", "not_match")) == "match"
    field_name(what, field)

    def rule(sample: Sample) -> Score:
        value = getattr(sample, field)
        if is_empty(value):
            raise Skip(f"{field} missing")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        try:
            found = compiled.search(text)
        except TookTooLong as fault:
            raise ReturnError(str(fault)) from None
        if found is None:
            return Score(0 if wanted else 1, explanation="nothing matches the pattern")
        return Score(
            1 if wanted else 0,
            explanation=f"the pattern matches at character {found.start()}: {quoted(found.group(), 80)}",
        )

    config = {"pattern": pattern, "must": must, "flags": list(compiled.names), "field": field, "version": 1}
    return LocalMetric(rule, name, None, config, (field,), target)
