"""`CompositeMetric`: a tree of metrics that is one metric."""

from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from spangrade.errors import ConfigError
from spangrade.metrics.aggregate import Aggregate, check_aggregate, check_weight
from spangrade.metrics.base import BaseMetric, Options
from spangrade.metrics.tree import Tree, stands_for
from spangrade.model.evaluator import Failure, check_name

if TYPE_CHECKING:  # what runs a tree is imported with the first one
    from spangrade.metrics.tree_run import TreeRun

OnMissing = Literal["fail", "ignore"]
_ON_MISSING: Final = ("fail", "ignore")


class Merged(dict[str, Any]):
    """The results of a tree, by result key. ``failures``: those that are not there because a metric failed, each with the
    key as its ``name``, a ``kind`` (an exception's class), a ``message``, and the ``path`` of its leaf."""

    failures: tuple[Failure, ...] = ()


class CompositeMetric(Tree):
    """A tree: every metric in it runs on the same text or sample, and the results merge into one dict.

    ``CompositeMetric("quality", [Words(), Tone({"lang": "de"})])``. Children are class metrics, trees, and any other metric
    (a ``@metric``, a functional one, a function, a built-in's name), which stands there by its name.

    An aggregate adds one more number, under the tree's own ``result_key``: ``mean`` (weighted), ``min``, ``max``, or a
    function of the list of values (and, if it needs a second parameter, of weights). It is over the children: each metric's
    number (a bool is 1 or 0) under its own ``result_key``, each subtree's aggregate; the children of a subtree without one
    count as the tree's own, their weights multiplied by its. A weight of 0 leaves a child out. Where a child failed, was
    skipped, or gave no number, the aggregate fails, since one over the rest is another number; ``on_missing="ignore"`` says
    that it is meant all the same.

    A metric that raises does not lose the others: `evaluate` returns what there is, with the rest in ``failures``; in the
    pipeline each failure leaves under its own name. There each metric has its own time limit: one that hangs is a failure of
    kind ``timeout``, the others' scores arrive, and after three such in a row it alone is paused (failures of kind
    ``paused``). ``process=True`` is for the whole tree: a metric in it runs where the tree does, and one that hangs there
    ends the process, and with it what the whole tree has found on that sample. Nothing may be added or removed while it runs.

    Args:
        name: what it is called, and its ``result_key`` where none is said; default the class's name.
        children: added in order.
        weights: child, or its ``result_key`` or name → weight; 1 where none is said. Without ``aggregate`` they mean ``mean``.
        aggregate: see above.
        on_missing: see above.
        config: for a subclass with a `config_schema`.
        result_key, options: as of `BaseMetric`. ``threshold``, ``lower_is_better`` and ``verdict`` are for the aggregate;
            each metric in the tree keeps its own. ``timeout``: seconds that no metric in it may exceed, each by itself, and
            the limit of those that have the default of 5.

    Raises:
        ValueError, TypeError: as of `add`; an unknown aggregate, or a weight for a child that is not there.
    """

    timeout: float | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "evaluate" in vars(cls):
            raise TypeError(
                f"{cls.__qualname__} is a tree, whose evaluate runs what is in it; put what it computes into a metric of the "
                "tree, or into aggregate=function"
            )

    def __init__(
        self,
        name: str | Iterable[Any] | None = None,
        children: Iterable[Any] = (),
        *,
        weights: Mapping[Any, float] | None = None,
        aggregate: Aggregate | None = None,
        on_missing: OnMissing = "fail",
        config: Any = None,
        result_key: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        if isinstance(name, BaseMetric):
            raise TypeError(f"a tree's first argument is its name; write CompositeMetric('quality', [{name!r}, ...])")
        if name is not None and not isinstance(name, str):
            children, name = name, None  # CompositeMetric([a, b])
        if name is not None:
            self.name = check_name(name, "tree's")
            if not self._says_key:
                self.result_key = self.name
        super().__init__(config, result_key=result_key, **options)
        what = f"tree {self.name!r}"
        self._children, self._weights = [], []
        self._aggregate = check_aggregate(aggregate, what)
        if on_missing not in _ON_MISSING:
            raise ConfigError(f"{what}: on_missing {on_missing!r} is not one of {', '.join(_ON_MISSING)}")
        self.on_missing = on_missing
        if isinstance(children, (str, BaseMetric)):
            raise TypeError(f"{what}: children is a list of metrics; write [{children!r}]")
        for child in children or ():
            self.add(child)
        if weights is not None and not isinstance(weights, Mapping):
            raise TypeError(f"{what}: weights is a dict of result key to weight, not a {type(weights).__name__}")
        self._weigh(weights or {}, what)

    def _weigh(self, weights: Mapping[Any, float], what: str) -> None:
        for key, weight in weights.items():
            at = self._meant(key)
            if len(at) != 1:
                which = "no child" if not at else f"{len(at)} children"
                known = ", ".join(repr(child.result_key) for child in self._children) or "none"
                raise ConfigError(f"{what}: weights: {key!r} is {which}; the children's result keys are {known}")
            self._weights[at[0]] = check_weight(weight, f"{what}, {key!r}")
        if weights:
            self._check(self)

    def _meant(self, key: Any) -> list[int]:
        """The children that a key of ``weights`` names: a metric itself, a result key, or else a name."""
        if not isinstance(key, str):
            return [i for i, child in enumerate(self._children) if stands_for(child, key)]
        by_key = [i for i, child in enumerate(self._children) if child.result_key == key]
        return by_key or [i for i, child in enumerate(self._children) if child.name == key]

    @property
    def aggregate(self) -> Aggregate | None:
        """How the children's numbers become one; None: they do not."""
        if self._aggregate is None and any(weight is not None for weight in self._weights):
            return "mean"
        found: Aggregate | None = self._aggregate
        return found

    def evaluate(self, sample: Any, /) -> Merged | Awaitable[Merged]:
        """The merged results on a text, or on a `Sample`; an awaitable of them, if a metric of the tree is async."""
        from spangrade.metrics.tree_pass import TreePass
        from spangrade.metrics.tree_plan import plan_of

        return TreePass(plan_of(self), sample, _merged).run()  # type: ignore[no-any-return]

    @classmethod
    def from_config(cls, config: Any = None, *, result_key: str | None = None, **parameters: Any) -> Any:
        """As `BaseMetric.from_config`, for a subclass that puts its tree together itself: ``cls(config=...)``."""
        if parameters:
            config = {**dict(config or {}), **parameters}
        made = cls() if config is None else cls(config=config)
        if result_key is not None:
            made.result_key = check_name(result_key, f"tree {made.name!r}: its result_key as a")
        return made

    def _leaf_of(self, given: Any) -> BaseMetric[Any]:
        from spangrade.metrics.catalog import as_leaf  # which knows trees

        return as_leaf(given)

    def _check(self, root: Any) -> None:
        from spangrade.metrics.tree_plan import plan_of

        plan_of(root)


def _merged(found: "TreeRun") -> Merged:
    merged = Merged(found.raw)
    merged.failures = tuple(found.failures)
    return merged
