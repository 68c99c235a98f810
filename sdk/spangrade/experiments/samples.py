"""What evaluators see of a run: the dataset's item, with what the run's trace says of it, as live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spangrade.experiments.item import Item, plain
from spangrade.experiments.task import Task, sample_of_item
from spangrade.experiments.tracing import KIND, TracedRun
from spangrade.model.sample import Sample
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.family import Family, by_start
from spangrade.samples.reading import ROOT_KINDS, Call
from spangrade.tracing import capture
from spangrade.tracing.lazy.span import Attributes


@dataclass(frozen=True, slots=True)
class Found:
    """``item``: the run's own Sample. ``graded``: what each target's evaluators see: (target, call, sample). A target of
    which the run has no call is in ``absent``. ``metadata``: the item's, with what the task said."""

    item: Sample
    graded: tuple[tuple[str, Call, Sample], ...]
    absent: tuple[str, ...]
    metadata: Mapping[str, Any]


def found_in(item: Item, run: TracedRun, output: Any, targets: Sequence[str], task: Task | None) -> Found:
    """The Samples of a run that has come to an output.

    Documents are those that the task retrieved (if it searched, also none), and otherwise the item's; ``context`` is that of a
    live call, and the item's own keys win; metadata is the item's with what the task said; ``expected`` is the item's.

    Without a task the output came with the dataset, so nothing of the run's spans says anything of it, and evaluators of every
    target see the item.
    """
    if task is None:
        run.gave(output, item["documents"])
        root, _ = run.calls()
        sample = replace(sample_of_item(item), output=plain(output), trace_id=run.ids[0])
        return Found(sample, tuple((target, root, sample) for target in targets), (), item["metadata"])
    own = run.gave(output)
    root, calls = run.calls()
    found = root_sample([root], calls)
    assert found is not None  # a chain is a root
    live = found[1]
    tops = _topmost(root, calls)
    said = root.reading.output if not own else _said_instead(task, tops, output)
    searched = bool(live.context.get("searched"))
    metadata = _joined([item["metadata"], *(top.reading.metadata for top in tops), root.reading.metadata])
    sample = Sample(
        input=item["input"],
        output=plain(output) if said is None else said,
        expected=item["expected"],
        documents=live.documents if searched else item["documents"],
        context=_joined([*(top.reading.context for top in tops), live.context, _mapping(item["context"])]),
        metadata=metadata,
        trace_id=run.ids[0],
        item_id=item["item_id"],
    )
    graded: list[tuple[str, Call, Sample]] = []
    absent = []
    for target in targets:
        if target == "root":
            graded.append((target, root, sample))
            continue
        mine = [(call, _of_call(call, calls, sample)) for call in sorted(calls, key=by_start) if call.kind == target]
        if target == KIND and not (task.is_traced and tops):  # which is the same call, and a chain itself
            mine.insert(0, (root, sample))
        graded.extend((target, call, one) for call, one in mine)
        if not mine:
            absent.append(target)
    return Found(sample, tuple(graded), tuple(absent), metadata)


def _topmost(root: Call, calls: Sequence[Call]) -> list[Call]:
    """The calls below the run that would be roots live, the first to start first."""
    family = Family([root, *calls])
    return [
        call
        for call in family.calls
        if call is not root and call.kind in ROOT_KINDS and all(above is root for above in family.ancestors(call))
    ]


def _said_instead(task: Task, tops: Sequence[Call], output: Any) -> Any:
    """What a traced function gave by `set_output` in place of what it returned; None where it did not."""
    if not task.is_traced or len(tops) != 1:
        return None
    as_returned = Attributes()
    capture.write_output(as_returned, tops[0].kind, output)  # type: ignore[arg-type]
    recorded = tops[0].span.attributes
    if not any(key in recorded for key in as_returned) or all(recorded.get(k) == v for k, v in as_returned.items()):
        return None
    return tops[0].reading.output


def _joined(mappings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: value for mapping in mappings for key, value in mapping.items()}


def _of_call(call: Call, calls: Sequence[Call], item: Sample) -> Sample:
    """A call below, as live, with what the dataset says of its item."""
    sample = sample_of(call, [other for other in calls if other is not call])
    return replace(sample, expected=item.expected, item_id=item.item_id, metadata={**item.metadata, **sample.metadata})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
