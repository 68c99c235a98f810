"""What the evaluators of a pipeline look at: which calls are wanted as a root, and which by themselves."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spangrade.model.target import Rule, rule_of
from spangrade.samples.family import by_end
from spangrade.samples.reading import ROOT_KINDS, Call
from spangrade.samples.sightings import is_again, seen_again, told_twice

SESSION: Final = "session"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The evaluators' targets: kinds (root among them), and rules by their text."""

    kinds: frozenset[str] = frozenset()
    rules: tuple[tuple[str, Rule], ...] = ()

    @classmethod
    def of(cls, targets: Iterable[str]) -> "Wanted":
        """Of checked targets."""
        known = sorted(set(targets))
        rules = tuple((target, rule) for target in known if (rule := rule_of(target)) is not None)
        return cls(frozenset(known).difference(text for text, _ in rules), rules)

    @property
    def root_kinds(self) -> frozenset[str]:
        """What may be scored as a root, or be a turn of a conversation."""
        return ROOT_KINDS if "root" in self.kinds or self.sessions else frozenset()

    @property
    def sessions(self) -> bool:
        """Whether conversations are scored."""
        return SESSION in self.kinds

    @property
    def asks_attributes(self) -> bool:
        """Whether a rule looks at more than kind and name."""
        return any(rule.asks_attributes for _, rule in self.rules)

    def by_itself(self, kind: str, name: str, scope: str, attributes: Mapping[str, Any]) -> list[str]:
        """The targets that a call meets by itself; whether it is a root is another question."""
        found = [kind] if kind in self.kinds else []
        found += [text for text, rule in self.rules if rule.picks(kind, name, scope, attributes)]
        return found

    def targets_of(self, call: Call) -> list[str]:
        """`by_itself` of a call that has been read."""
        span = call.span
        return self.by_itself(call.kind, span.name, span.scope_name, span.attributes)

    def first_told(self, call: Call, targets: Iterable[str], around: Iterable[Call]) -> list[str]:
        """Those of ``targets`` for which the call is no second sighting of another one (see `spangrade.samples.sightings`).
        A rule that names a span means that span: then only what the rule picks is compared."""
        ended = [*(other for other in around if by_end(other) < by_end(call)), call]
        mine = call.span.span_id
        found: list[str] = []
        again: bool | None = None
        for target in targets:
            rule = rule_of(target)
            if rule is not None and rule.names_spans:
                among = [other for other in ended if target in self.targets_of(other)]
                if mine not in told_twice(among):
                    found.append(target)
                continue
            if again is None:
                again = is_again(call.kind, call.within) or mine in seen_again(ended)
            if not again:
                found.append(target)
        return found


@dataclass(frozen=True, slots=True)
class Wants:
    """What `Intake` asks: the targets, and whether a judge may be chosen for a trace (by id and state)."""

    targets: Wanted
    judge: Callable[[int, str], bool]
