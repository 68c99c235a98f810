"""The judge that a command line names: alone in a file, in a configuration file, or an object of a module."""

from pathlib import Path
from typing import Any, Final

from spangrade.config import FileConfig, LiveEntry, checked, mapping_in
from spangrade.errors import ConfigError
from spangrade.judges.judge import LlmJudge
from spangrade.scoring.evaluators import placed_evaluators

_FILES: Final = (".yaml", ".yml", ".json")


def is_judge_file(given: str) -> bool:
    """Whether ``given`` is ``file.yaml`` or ``file.yaml:name``, and not ``module:name``."""
    return Path(given).is_file() or Path(_parted(given)[0]).suffix.lower() in _FILES


def judge_in(given: str) -> LlmJudge:
    """The judge in a YAML file, asked where the file's ``judge_endpoints`` say, else where the environment says.

    The file holds one judge's keys (``name``, ``criteria``, ``scale``, ...), and beside them ``judge_endpoints`` if wanted; or
    it is a whole configuration file. Of several judges ``file.yaml:name`` says which. A judge need not be live, its rate and
    budget are not looked at, and its cache is off: from a cache nothing is learned of how stable it is.

    Raises:
        ConfigError: the file, the name or the judge cannot work.
    """
    path, name = _parted(given)
    raw = mapping_in(path)
    if "judges" not in raw and ("criteria" in raw or "name" in raw):
        raw = dict(raw)
        endpoints = raw.pop("judge_endpoints", [])
        raw = {"judges": [raw], "judge_endpoints": endpoints}
    config = checked(raw, FileConfig, path)
    names = [judge.name for judge in config.judges]
    if not names:
        raise ConfigError(f"{path!r} has no judge; it needs name and criteria, or judges: [...]")
    if name is None and len(names) > 1:
        raise ConfigError(f"{path!r} has {len(names)} judges; say which, as in {path}:{names[0]} ({', '.join(names)})")
    entries = [judge for judge in config.judges if name in (None, judge.name)]
    if not entries:
        raise ConfigError(f"{path!r} has no judge {name!r}; it has {', '.join(names)}")
    policy = entries[0].live
    price = policy.price if isinstance(policy, LiveEntry) else None
    entry = entries[0].model_copy(update={"live": LiveEntry(price=price), "cache": None})
    (placed,) = placed_evaluators([], [entry], config.judge_endpoints)
    return as_judge(placed.evaluator, given)


def as_judge(found: Any, given: str) -> LlmJudge:
    """``found``, if it is a judge.

    Raises:
        ConfigError: it is something else.
    """
    if isinstance(found, LlmJudge):
        return found
    raise ConfigError(f"{given!r} is a {type(found).__name__}, not an LlmJudge")


def _parted(given: str) -> tuple[str, str | None]:
    if Path(given).is_file():
        return given, None
    path, mark, name = given.rpartition(":")
    return (path, name) if mark and len(path) > 1 else (given, None)
