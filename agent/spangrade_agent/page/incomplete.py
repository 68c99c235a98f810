"""What was graded without all that belongs to it, in a sentence for the front page."""

from collections.abc import Mapping

from spangrade.samples.tally import Tally
from spangrade_agent.page.words import counted

_LOST = ("max_age", "max_bytes", "max_spans", "max_of_a_span", "overload")


def incomplete(tally: Tally) -> str | None:
    """None where nothing was; the setting is named that would change it."""
    partial, conversations, late, logs = (dict(c) for c in (tally.partial, tally.conversations, tally.late, tally.logs))
    said = []
    if partial:
        said.append(f"{counted(sum(partial.values()), 'sample')} decided as they were ({_by_reason(partial)})")
    if conversations:
        many = counted(sum(conversations.values()), "conversation")
        said.append(f"{many} graded in part ({_by_reason(conversations)})")
    if late:
        said.append(f"{counted(sum(late.values()), 'call')} came too late")
    lost = sum(logs.get(reason, 0) for reason in _LOST)
    if lost:
        said.append(f"{counted(lost, 'log record')} met no call")
    return f"{', '.join(said)}; see assembly: in the configuration" if said else None


def _by_reason(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {number:,}" for reason, number in sorted(counts.items(), key=lambda one: -one[1]))
