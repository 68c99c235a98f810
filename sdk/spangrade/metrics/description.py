"""What there is to say of a metric that can be had by name: for a table, for a page, as JSON."""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from spangrade.errors import ConfigError
from spangrade.metrics import lookup
from spangrade.metrics.base import BaseMetric, described
from spangrade.metrics.catalog import node_of
from spangrade.metrics.composite import CompositeMetric
from spangrade.metrics.local import LocalMetric
from spangrade.metrics.lookup import Entry, missing_extra
from spangrade.model.evaluator import Evaluator, EvaluatorInfo

Family = Literal["function", "functional", "class", "tree", "other"]


@dataclass(frozen=True, slots=True)
class Description:
    """Of one metric.

    Attributes:
        name, origin, where, extra: as of `spangrade.metrics.lookup.Entry`.
        family: what it is written as; None where it could not be loaded.
        summary: one line.
        doc: the whole docstring; of a built-in, its module's page behind it.
        requires, threshold, lower_is_better, verdict, target, version: as of `LocalMetric`; None where its parameters decide.
        inputs: of a functional metric, each input and where in the Sample it is found, such as ``documents[].content``.
        allowed_values: of a functional metric, as it was given them: categories, ``(lowest, highest)``, or a length.
        parameters: JSON schema of what ``config`` takes; None: nothing.
        install: what to install for the extra it needs, where that is missing.
        error: why it cannot be used as it is, or empty.
    """

    name: str
    origin: str
    where: str
    family: Family | None = None
    summary: str = ""
    doc: str = ""
    requires: tuple[str, ...] | None = None
    threshold: float | None = None
    lower_is_better: bool | None = None
    verdict: bool | None = None
    target: str | None = None
    version: str | None = None
    inputs: Mapping[str, str] | None = None
    allowed_values: Any = None
    parameters: Mapping[str, Any] | None = field(default=None)
    extra: str = ""
    install: str = ""
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, all keys."""
        found = asdict(self)
        if isinstance(self.allowed_values, range):
            found["allowed_values"] = str(self.allowed_values)  # it may be long
        return found


def describe(entry: Entry) -> Description:
    """The description of what an entry stands for; one that cannot be loaded says why in ``error``."""
    install = missing_extra(entry.extra) if entry.extra else ""
    base: dict[str, Any] = {
        "name": entry.name, "origin": entry.origin, "where": entry.where, "extra": entry.extra, "install": install,
        "summary": entry.summary,
    }  # fmt: skip
    try:
        thing = entry.load()
    except ConfigError as fault:
        return Description(**base, error=str(fault))
    doc = _doc(thing, entry)
    base["summary"] = entry.summary or _first_line(doc)
    parameters = _parameters(thing, entry)
    try:
        node = _node(thing, entry)
        info, family = _info(node), _family(node)
    except ConfigError as fault:
        error = "" if parameters is not None else str(fault)  # with the right config it works
        return Description(**base, doc=doc, parameters=parameters, family=_family(thing), error=error)
    return Description(
        **base,
        family=family,
        doc=doc,
        parameters=parameters,
        requires=info.requires,
        threshold=info.threshold,
        lower_is_better=info.lower_is_better,
        verdict=info.verdict,
        target=info.target,
        version=info.version,
        inputs=getattr(node, "inputs", None) if family == "functional" else None,
        allowed_values=getattr(node, "allowed_values", None) if family == "functional" else None,
    )


def descriptions() -> list[Description]:
    """Of all that can be had by name; see `spangrade.metrics.lookup.entries`."""
    return [describe(entry) for entry in lookup.entries()]


def _node(thing: Any, entry: Entry) -> BaseMetric[Any] | Evaluator:
    if entry.factory:
        try:
            thing = thing()
        except TypeError as fault:
            raise ConfigError(str(fault)) from None
    return node_of(thing)


def _info(node: BaseMetric[Any] | Evaluator) -> EvaluatorInfo:
    return described(node, node.name)[0] if isinstance(node, BaseMetric) else node.info


def _family(thing: Any) -> Family | None:
    kind = thing if isinstance(thing, type) else type(thing)
    if issubclass(kind, CompositeMetric):
        return "tree"
    if issubclass(kind, BaseMetric):
        return "class"
    if isinstance(thing, LocalMetric) or inspect.isroutine(thing):
        return "function"
    if isinstance(thing, Evaluator):
        return "functional" if hasattr(thing, "allowed_values") else "other"
    return None


def _doc(thing: Any, entry: Entry) -> str:
    own = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
    if isinstance(thing, BaseMetric):
        own = inspect.cleandoc(type(thing).__doc__ or "")
    if isinstance(thing, type) and thing.__doc__ is None:
        own = ""
    if entry.origin != "built-in":
        return own
    page = inspect.cleandoc(sys.modules[entry.where.partition(":")[0]].__doc__ or "")
    return f"{page}\n\n{own}" if own and page else page or own


def _first_line(doc: str) -> str:
    return next((line.strip() for line in doc.splitlines() if line.strip()), "")


def _parameters(thing: Any, entry: Entry) -> dict[str, Any] | None:
    if entry.factory:
        return _of_signature(thing)
    if not isinstance(thing, type) or not issubclass(thing, BaseMetric) or not thing.config_schema.model_fields:
        return None
    return _schema(thing.config_schema)


def _of_signature(factory: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    hints = inspect.get_annotations(factory)
    parameters = inspect.signature(factory).parameters
    for number, parameter in enumerate(parameters.values()):
        default = ... if parameter.default is parameter.empty else parameter.default
        # By alias, since a model's field may not be called ``schema`` or ``copy``; a parameter may.
        title = parameter.name.replace("_", " ").title()
        fields[f"p{number}"] = (hints.get(parameter.name, Any), Field(default, alias=parameter.name, title=title))
    try:
        return _schema(create_model("Config", __config__=ConfigDict(arbitrary_types_allowed=True), **fields))
    except Exception:  # noqa: BLE001 - an annotation that pydantic cannot read
        return {"type": "object", "properties": {key: {} for key in parameters}}


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    try:
        return model.model_json_schema()
    except Exception:  # noqa: BLE001 - a field of a type that JSON schema has no word for
        return {"type": "object", "properties": {name: {} for name in model.model_fields}}
