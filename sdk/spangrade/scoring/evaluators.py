"""Evaluators as an application or a configuration file names them → what the pipeline runs. The same in both hosts."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from spangrade import _switches
from spangrade.config import JudgeEndpointEntry, JudgeEntry, LiveEntry, MetricEntry, RedactEntry, TreeEntry
from spangrade.errors import ConfigError, JudgeError
from spangrade.judges.judge import LlmJudge
from spangrade.judges.live import JUDGES, live, place
from spangrade.judges.providers import Endpoint
from spangrade.metrics.catalog import resolve
from spangrade.model.policy import Placed
from spangrade.scoring.processes import check_can_run
from spangrade.scoring.seats import is_remote
from spangrade.scoring.source_changes import look_at


def scoring_off() -> bool:
    """The kill switches that stop scoring: ``SPANGRADE_SCORING=off``, and ``SPANGRADE_DISABLED``, which stops all."""
    return _switches.scoring_stopped()


def placed_evaluators(
    metrics: Sequence[Any], judges: Sequence[Any], endpoints: Sequence[JudgeEndpointEntry] = ()
) -> list[Placed]:
    """Metrics (functions, names, import paths, file entries) and judges (objects, policies, file entries), in order.
    ``endpoints``: where judges that have no client of their own find their models, before the environment is asked.

    Raises:
        ConfigError: one that cannot work (here, or where it is to run), or two of the same name and config.
    """
    found = [_metric(given, i) for i, given in enumerate(metrics)]
    found += [_at(endpoints, _judge(given)) for given in judges]
    seen: set[str] = set()
    for placed in found:
        info = placed.evaluator.info
        if info.key in seen:
            raise ConfigError(
                f"two evaluators are named {info.name!r} with the same config; give one another name, version or config, "
                "or drop it"
            )
        seen.add(info.key)
        if is_remote(placed):
            check_can_run(placed.evaluator)
        look_at(placed.evaluator)
    return found


def _metric(given: Any, index: int) -> Placed:
    if not isinstance(given, (MetricEntry, TreeEntry)):
        return Placed(resolve(given))
    from spangrade.metrics.entries import evaluator_from  # which knows trees, and is needed for a file only

    try:
        return Placed(evaluator_from(given), match=given.match)
    except ConfigError as fault:
        raise ConfigError(f"metrics[{index}]: {str(fault).removeprefix('metrics: ')}") from fault


def _judge(given: Any) -> Placed:
    if not isinstance(given, JudgeEntry):
        return place(given)
    arguments = given.model_dump(exclude={"live", "match", "timeout", "cache"}, exclude_none=True)
    if "fields" in arguments:
        arguments["fields"] = tuple(arguments["fields"])
    arguments["examples"] = tuple(arguments["examples"])
    judge = LlmJudge(**arguments, live=given.live is True)
    if given.timeout is not None:
        judge = judge.with_timeout(given.timeout)
    if given.cache is not None:
        judge = judge.with_cache(given.cache)
    if isinstance(given.live, LiveEntry):
        placed = live(judge, **given.live.model_dump(exclude_none=True))
    else:
        placed = place(judge)
    return replace(placed, match=given.match)


def _at(endpoints: Sequence[JudgeEndpointEntry], placed: Placed) -> Placed:
    if not isinstance(placed.evaluator, JUDGES):
        return placed
    try:
        return replace(placed, evaluator=placed.evaluator.at(endpoints_of(endpoints)))
    except JudgeError as fault:
        raise ConfigError(f"judge {placed.evaluator.name!r}: judge_endpoints: {fault}") from None


def endpoints_of(entries: Sequence[JudgeEndpointEntry]) -> list[Endpoint]:
    """A file's ``judge_endpoints`` as the judges take them."""
    return [
        Endpoint(
            **entry.model_dump(exclude={"models", "headers"}),
            models=tuple(entry.models),
            headers=tuple(entry.headers.items()),
        )
        for entry in entries
    ]


def redact_by_patterns(entry: RedactEntry | None) -> Callable[[str], str] | None:
    """A file's ``redact`` as a function; None without one.

    Raises:
        ConfigError: a pattern that is no regular expression.
    """
    if entry is None:
        return None
    try:
        patterns = [re.compile(pattern) for pattern in entry.patterns]
    except re.error as fault:
        raise ConfigError(f"redact.patterns: {fault.pattern!r} is not a regular expression: {fault}") from fault

    def redact(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub(entry.replacement, text)
        return text

    return redact
