"""A functional metric on a `Sample`: which field fills which input, and what its result says as a score."""

import enum
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from spangrade._values import bounded, snapshot
from spangrade.errors import ConfigError
from spangrade.metrics.binding import ALIASES, field_of
from spangrade.metrics.functional_inputs import Inputs
from spangrade.metrics.functional_options import LiveOptions
from spangrade.metrics.functional_paths import MISSING, SamplePath
from spangrade.metrics.functional_values import Kind
from spangrade.model.evaluator import Verdict
from spangrade.model.result import MetricResult
from spangrade.model.returned import ScoreReader
from spangrade.model.sample import SAMPLE_FIELDS, Sample
from spangrade.model.score import FAIL, MAX_EXPLANATION, MAX_LABEL, PASS, Graded, ReturnError, Rule, Score, Skip

_SAMPLE: Final = "sample"
_KEPT: Final = frozenset((str, bool, int, float))


class Filling:
    """How a Sample becomes the inputs of a function.

    An input takes what its declared path finds, or else the Sample field of its name or alias; one named ``sample``, or
    annotated `Sample`, takes the Sample itself; what a partial has bound stays bound. What is not there (None, or no such
    key) leaves the input out; if it has no default, the sample is skipped.

    Args:
        inputs: what the function takes.
        paths: declared paths by input.
        what: the metric, for messages.

    Raises:
        ConfigError: an input without a default that neither a field nor a path fills.
    """

    def __init__(self, inputs: Inputs, paths: Mapping[str, SamplePath], what: str) -> None:
        self._sources: list[tuple[str, SamplePath, bool]] = []
        self._whole: list[str] = []
        for name in (*inputs.names, *(extra for extra in paths if extra not in inputs.names)):
            if name in inputs.bound and name not in paths:
                continue
            optional = name not in inputs.names or inputs.is_optional(name)
            path = paths.get(name) or _by_name(name, inputs, what)
            if path is None and name in inputs.names and (name == _SAMPLE or inputs.hint(name) is Sample):
                self._whole.append(name)
            elif path is not None:
                self._sources.append((name, path, optional))
            elif not optional:
                raise ConfigError(
                    f"{what}: parameter {name!r} cannot be filled from a Sample; name it like one of its fields "
                    f"({', '.join(SAMPLE_FIELDS)}; also {', '.join(ALIASES)}), or say where it is found: "
                    f"inputs={{{name!r}: 'metadata.{name}'}} (or give it a default)"
                )

    def given(self, sample: Sample) -> dict[str, Any]:
        """The inputs that the sample has.

        Raises:
            Skip: one without a default is missing.
        """
        found: dict[str, Any] = dict.fromkeys(self._whole, sample)
        for name, path, optional in self._sources:
            value = path.read(sample)
            if value is not MISSING:
                found[name] = value
            elif not optional:
                raise Skip(f"{path.text} missing")
        return found

    def places(self) -> dict[str, str]:
        """Each input, and the path at which it is found; ``sample`` for the Sample itself."""
        return dict.fromkeys(self._whole, _SAMPLE) | {name: path.text for name, path, _ in self._sources}


def _by_name(name: str, inputs: Inputs, what: str) -> SamplePath | None:
    field = field_of(name)
    if field is None:
        return None
    if field == "documents" and _is_texts(inputs.hint(name)):
        return SamplePath("documents[].content", what)
    return SamplePath(field, what)


def _is_texts(hint: Any) -> bool:
    """Whether a type asks for texts: documents are dicts, and where their texts are wanted these are what is meant."""
    origin, members = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(map(_is_texts, members))
    if origin is Annotated:
        return _is_texts(members[0])
    return isinstance(origin, type) and issubclass(origin, Sequence) and members[:1] == (str,)


class Grading:
    """What a result says as a score.

    A category is a label; ``pass`` and ``fail``, and True and False, are a verdict too. A number is a value, passed or
    failed by the threshold as `LocalMetric` does it. A ranking is sent as it is. The reason is the explanation.
    """

    def __init__(self, name: str, kind: Kind, live: LiveOptions) -> None:
        self._name = name
        self._kind = kind
        self._verdict = live.verdict
        self._read_number = ScoreReader(name, Rule(live.threshold, live.lower_is_better, live.verdict))
        self._kept: dict[Any, Verdict] = {}  # of texts and bools without a reason: at most one for each category

    def verdict(self, result: MetricResult, value: Any) -> Verdict:
        """The verdict of a result; ``value`` is its value as the allowed values have it.

        Raises:
            ReturnError: there is no value; the message is the reason.
        """
        if result.value is None:
            raise ReturnError(result.reason or "returned no value and no reason")
        plain = result.reason is None and type(value) in _KEPT
        if self._kind == "numeric":
            return self._read_number(value if plain else Score(value, explanation=result.reason))
        kept = self._kept.get(value) if plain else None
        if kept is not None:
            return kept
        why = None if result.reason is None else bounded(str(result.reason), MAX_EXPLANATION)
        if self._kind == "ranking":
            return Verdict((Graded(self._name, explanation=why, structured=snapshot(value)),))
        label = bounded(_label(value), MAX_LABEL)
        made = Verdict((Graded(self._name, label=label, passed=self._passed(value, label), explanation=why),))
        if plain:
            self._kept[value] = made
        return made

    def _passed(self, value: Any, label: str) -> bool | None:
        return _passed(value, label) if self._verdict else None


def can_pass(kind: Kind, allowed_values: Any) -> bool:
    """Whether a metric's result can be a pass or a fail at all."""
    if kind == "discrete":
        return any(_passed(category, _label(category)) is not None for category in allowed_values)
    return kind == "numeric"


def _passed(category: Any, label: str) -> bool | None:
    return category if isinstance(category, bool) else {PASS: True, FAIL: False}.get(label)


def _label(category: Any) -> str:
    if isinstance(category, enum.Enum):
        category = category.value if isinstance(category.value, str) else category.name
    if isinstance(category, bool):
        return "true" if category else "false"
    return str(category)
