"""The inputs of a functional metric: the signature of its function, as one pydantic model that is built once.

A parameter's type is its annotation; without one, anything goes. Pydantic's usual rules apply: ``"5"`` is taken for an int
and a dict for a nested model, a text is not taken for a list (``Annotated[int, Strict()]`` asks for more). A default is
handed over as the function has it, except that a list, dict or set is a fresh copy each time. A parameter that may be None
and has no default is optional.
"""

import copy
import difflib
import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from spangrade._threads import ProcessLock
from spangrade.metrics.binding import bound_names
from spangrade.metrics.functional_hints import Hints, signature
from spangrade.metrics.functional_values import shown

_REST: Final = "**"  # the alias under which the model holds what **kwargs takes: no parameter's name
_CONFIG: Final = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())
_CONSTANTS: Final = frozenset((str, int, float, bool, bytes))
_Kind = inspect.Parameter

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Inputs:
    """What a function takes, by name.

    Args:
        fn: the function.
        name: the metric's, for messages.
        scope: names beside the function's module and closure that its annotations may mean.

    Raises:
        ConfigError: the signature cannot be read.
    """

    def __init__(self, fn: Callable[..., Any], name: str, scope: Mapping[str, Any]) -> None:
        self._name = name
        self.bound = bound_names(fn)
        self.parameters = signature(fn, f"metric {name!r}")
        self._by_kind: dict[Any, list[str]] = {}
        for parameter in self.parameters.values():
            self._by_kind.setdefault(parameter.kind, []).append(parameter.name)
        rest = self._by_kind.get(_Kind.VAR_KEYWORD)
        self._rest = rest[0] if rest else None
        self.names = [p for p in self.parameters if p != self._rest]
        self._lock = ProcessLock()
        self._hints = Hints(fn, self.parameters, scope)
        self._types: dict[str, Any] = {}
        self._model: type[BaseModel] | None = None
        self._check: Callable[[dict[str, Any]], Any] | None = None
        try:
            self._build(self._hints.resolve())
        except Exception:  # noqa: BLE001, S110 - a name may be known by the time of the first use; then it is said what is wrong
            pass

    @property
    def model(self) -> type[BaseModel]:
        """The pydantic model of the inputs."""
        self._checker()
        assert self._model is not None
        return self._model

    def arguments(self, given: dict[str, Any]) -> Arguments:
        """``given`` by name, checked → positional and keyword arguments of the function.

        Warns of names that the function does not have, and leaves them out.

        Raises:
            TypeError: an input is missing or has the wrong type. The message names it and says how to call.
        """
        check = self._check or self._checker()
        asked = given if self._rest is None else self._with_rest(given)
        try:
            held = check(asked).__dict__
        except ValidationError as fault:
            held = self._without_unknown(asked, fault)
        return ((), held) if self._simple else self._spread(held)

    def positional(self, method: str, args: tuple[Any, ...], given: Mapping[str, Any]) -> TypeError:
        """What to raise when inputs were given without their names."""
        names = [name for name in self.names if name not in given]
        right = [f"{name}={shown(value)}" for name, value in zip(names, args, strict=False)]
        right += [f"{name}={shown(value)}" for name, value in given.items()]
        right += [f"{name}=..." for name in names[len(args) :] if self._required(name)]
        extra = f"; it has {len(names)} more inputs, not {len(args)}" if len(args) > len(names) else ""
        return TypeError(
            f"{self._name}.{method}() requires keyword arguments, not positional{extra}. "
            f"You provided: {method}({', '.join(map(shown, args))}). Correct usage: {method}({', '.join(right)})"
        )

    def takes(self, name: str) -> bool:
        """Whether it has an input of that name, or takes any."""
        return name in self.names or self._rest is not None

    def is_optional(self, name: str) -> bool:
        """Whether an input may be left out."""
        return not self._required(name)

    def hint(self, name: str) -> Any:
        """The resolved type of a parameter; Any without one."""
        self._checker()
        return self._types[name]

    # --- the model ---------------------------------------------------------------------------------------------------

    def _checker(self) -> Callable[[dict[str, Any]], Any]:
        with self._lock:
            if self._check is None:
                types_ = self._hints.resolve(self._unusable)
                try:
                    self._build(types_)
                except Exception:  # noqa: BLE001 - pydantic's errors have no common base, and a type may bring its own
                    self._build({name: hint if self._usable(name, hint) else Any for name, hint in types_.items()})
            assert self._check is not None
            return self._check

    def _build(self, types_: dict[str, Any]) -> None:
        fields: dict[str, str] = {}
        definitions: dict[str, Any] = {}
        for at, (name, parameter) in enumerate(self.parameters.items()):
            field = name
            if name.startswith("_") or hasattr(BaseModel, name):  # which no field of a model can be called
                field = f"p{at}"
                while field in self.parameters:
                    field += "_"
            fields[name] = field
            definitions[field] = _definition(parameter, types_[name], _REST if name == self._rest else name)
        model = create_model(f"{self._name}_inputs", __config__=_CONFIG, **definitions)
        model.model_rebuild(raise_errors=True)  # where a nested model was not complete yet
        self._types, self._fields, self._model = types_, fields, model
        # Where the model's fields have the parameters' names, what it holds are the function's keyword arguments.
        by_name = set(self._by_kind) <= {_Kind.POSITIONAL_OR_KEYWORD, _Kind.KEYWORD_ONLY}
        self._simple = by_name and all(name == field for name, field in fields.items())
        self._check = TypeAdapter(model).validator.validate_python
        self._hints.forget()

    def _usable(self, name: str, hint: Any) -> bool:
        try:
            create_model("probe", __config__=_CONFIG, probe=(hint, ...)).model_rebuild(raise_errors=True)
        except Exception as fault:  # noqa: BLE001 - as above
            self._unusable(name, hint, (str(fault).splitlines() or [type(fault).__name__])[0])
            return False
        return True

    def _unusable(self, name: str, annotation: Any, why: str) -> None:
        _warn(
            f"metric {self._name!r}: the annotation {shown(annotation)} of {name!r} cannot be used ({why}), so that input is "
            "not checked; make it a type that the metric's module knows when it runs"
        )

    # --- one call ------------------------------------------------------------------------------------------------------

    def _with_rest(self, given: dict[str, Any]) -> dict[str, Any]:
        known = {name: value for name, value in given.items() if name in self.parameters and name != self._rest}
        known[_REST] = {name: value for name, value in given.items() if name not in known}
        return known

    def _spread(self, held: dict[str, Any]) -> Arguments:
        field, kinds = self._fields, self._by_kind
        args = [held[field[name]] for name in kinds.get(_Kind.POSITIONAL_ONLY, ())]
        middle = kinds.get(_Kind.POSITIONAL_OR_KEYWORD, ())
        keywords = {name: held[field[name]] for name in kinds.get(_Kind.KEYWORD_ONLY, ())}
        several = kinds.get(_Kind.VAR_POSITIONAL)
        if several:
            args += [held[field[name]] for name in middle]
            args += held[field[several[0]]]
        else:
            keywords.update((name, held[field[name]]) for name in middle)
        if self._rest is not None:
            keywords.update(held[field[self._rest]])
        return tuple(args), keywords

    def _without_unknown(self, given: dict[str, Any], fault: ValidationError) -> dict[str, Any]:
        """What the model holds when only unknown names were wrong with ``given``."""
        errors = fault.errors(include_url=False, include_context=False)
        unknown = [str(e["loc"][0]) for e in errors if e["type"] == "extra_forbidden" and len(e["loc"]) == 1]
        faults = [e for e in errors if e["type"] != "extra_forbidden" or len(e["loc"]) > 1]
        if faults:
            raise TypeError(self._explain(faults, unknown)) from None
        _warn(
            f"{self._name} received unknown arguments: {', '.join(sorted(unknown))} (left out). "
            f"Valid arguments: {', '.join(self.names) or 'none'}"
        )
        check = self._checker()
        held: dict[str, Any] = check({k: v for k, v in given.items() if k not in unknown}).__dict__
        return held

    def _explain(self, errors: list[Any], unknown: list[str]) -> str:
        lines = []
        for error in errors:
            first, *deeper = error["loc"][1:] if error["loc"][0] == _REST else error["loc"]
            where = f" (in {'.'.join(map(str, deeper))})" if deeper else ""
            near = difflib.get_close_matches(str(first), unknown, n=1)
            if error["type"] == "missing" and not deeper:
                hint = f" (you gave {near[0]!r}: is it meant?)" if near else ""
            else:
                hint = f", got {shown(error['input'])}"
            lines.append(f"{first}: {error['msg']}{where}{hint}")
        also = f" Unknown names: {', '.join(sorted(unknown))}." if unknown else ""
        call = ", ".join(f"{name}=<{self._type(name)}>" for name in self.names if self._required(name))
        return f"Type validation errors for {self._name}: {'; '.join(lines)}.{also} Give inputs by name: ({call})"

    def _type(self, name: str) -> str:
        hint = self._types[name]
        return "anything" if hint is Any else inspect.formatannotation(hint).replace("typing.", "")

    def _required(self, name: str) -> bool:
        model = self.model
        return model.model_fields[self._fields[name]].is_required()


def _definition(parameter: inspect.Parameter, hint: Any, alias: str) -> tuple[Any, Any]:
    """A field of `create_model`. The alias is said last, so that one in an annotation of the application does not count."""
    default = parameter.default
    named = functools.partial(Field, alias=alias, validation_alias=alias)
    if parameter.kind is _Kind.VAR_KEYWORD:
        return dict[str, hint], named(default_factory=dict)
    if parameter.kind is _Kind.VAR_POSITIONAL:
        return tuple[hint, ...], named(default=())
    if isinstance(default, FieldInfo):
        return Annotated[hint, default], named()
    if default is _Kind.empty:
        return hint, named(default=None) if _may_be_none(hint) else named()
    if type(default) in (list, dict, set):
        return hint, named(default_factory=functools.partial(_copied, default))
    if default is None or type(default) in _CONSTANTS:
        return hint, named(default=default)
    return hint, named(default_factory=lambda: default)  # pydantic might copy it, which not everything can bear


def _copied(default: Any) -> Any:
    try:
        return copy.deepcopy(default)
    except Exception:  # noqa: BLE001 - it holds what cannot be copied, a lock or a client
        return copy.copy(default)


def _may_be_none(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _may_be_none(get_args(hint)[0])
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _warn(text: str) -> None:
    """Warn at the first frame that is not ours."""
    level, frame = 1, sys._getframe(0).f_back
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] == __package__.split(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level + 1)
