"""Judges of the registry: made within what the configuration allows, and placed in the running pipeline."""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from spangrade import _guard
from spangrade._log import log
from spangrade.config import JudgeEndpointEntry
from spangrade.errors import ConfigError, JudgeError, SpangradeError
from spangrade.judges.judge import LlmJudge
from spangrade.judges.live import place
from spangrade.judges.prompt import TEMPLATE_HASH
from spangrade.judges.providers import client_from_environment
from spangrade.model.policy import Placed, Policy
from spangrade.scoring.evaluators import endpoints_of
from spangrade_agent.config import Registry as Settings
from spangrade_agent.previews import Previews
from spangrade_agent.registry import Record, Registry, RegistryUnavailable, Version

LOOK_S: Final = 2.0  # how often the file is looked at, for what another process has changed
_FIELD: Final = re.compile(r"judge '.*?': (levels|fields|example|threshold|model|temperature|target|scale|criteria)")
_FIELDS: Final[Mapping[str, str]] = {"example": "config.examples", "threshold": "threshold"}


class Refused(SpangradeError):
    """Something that the agent does not do; ``field`` is the request's, with dots."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NotLive(SpangradeError):
    """A judge that cannot be activated as it is."""


class RegisteredJudges:
    """What the registry's judges do in this agent.

    Args:
        fixed: the configuration's own evaluators, which stay whatever happens.
        place: takes all evaluators that are to grade from now on; None where nothing is scored here.
        budget_store: where the money of previews is kept; see `spangrade.scoring.purse_store`.
    """

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        endpoints: Sequence[JudgeEndpointEntry],
        fixed: Sequence[Placed] = (),
        place: Callable[[Sequence[Placed]], None] | None = None,
        budget_store: str | None = None,
    ) -> None:
        self.registry = registry
        self._settings = settings
        self._endpoints = endpoints_of(endpoints)
        self._fixed = list(fixed)
        self._place = place
        self._lock = threading.RLock()
        self._made: dict[tuple[Any, ...], Placed] = {}
        self._problems: dict[str, str] = {}
        self._changes = -1
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            self.policy(True)
        except Refused as fault:
            raise ConfigError(f"registry: {fault}") from None
        self.previews = Previews(settings.budget or {}, budget_store)

    # --- what may be registered ----------------------------------------------------------------------------------------

    def judge(self, config: Mapping[str, Any], threshold: float = 0.5) -> LlmJudge:
        """The judge that a configuration describes, with the agent's endpoint.

        Raises:
            Refused: it cannot work, or not here.
        """
        given = dict(config)
        template = given.pop("template", None)
        if template not in (None, TEMPLATE_HASH):
            raise Refused(
                "config.template",
                "this agent's prompts differ from those of the Spangrade that sent it, so their scores would too: bring both to "
                "one release, or leave the template out to be graded by the agent's",
            )
        try:
            judge = LlmJudge(**given, threshold=threshold)
        except ConfigError as fault:
            found = _FIELD.match(str(fault))
            name = found.group(1) if found else "config"
            raise Refused(_FIELDS.get(name, name if name == "config" else f"config.{name}"), str(fault)) from None
        try:
            judge = judge.with_pinned_model()
        except ConfigError:
            raise Refused(
                "config.model", "the judge names no model, and neither does the agent's environment; name one"
            ) from None
        return self._at_its_endpoint(judge)

    def _at_its_endpoint(self, judge: LlmJudge) -> LlmJudge:
        model = str(judge.model)
        try:
            if any(endpoint.serves(model) for endpoint in self._endpoints):
                return judge.at(self._endpoints)
            if self._settings.allow_environment:
                client_from_environment(model)
                return judge
        except JudgeError as fault:
            raise Refused("config.model", f"no endpoint of this agent can be asked for {model!r}: {fault}") from None
        raise Refused(
            "config.model",
            f"no endpoint of this agent serves {model!r}; add it to the models of one of judge_endpoints in the agent's "
            "configuration, or name a model that is there",
        )

    def policy(self, live: bool | Mapping[str, Any]) -> Policy:
        """The policy of a registration: what it asks for, else the configuration's, under the configuration's ceilings. A
        floor (``min_per_minute``) and a price are not a registration's to say: either makes it dearer.

        Raises:
            Refused: it asks for what cannot be, or for more than it may.
        """
        settings, asked = self._settings, dict(live) if isinstance(live, Mapping) else {}
        rate = asked.get("rate")
        highest = max(rate.values(), default=0.0) if isinstance(rate, Mapping) else rate
        if highest is not None and highest > settings.max_rate:
            raise Refused(
                "live.rate",
                f"a rate of {highest:g} is more than this agent allows, {settings.max_rate:g}; ask for less, or raise "
                "registry.max_rate in its configuration",
            )
        minutes = [one for one in (asked.get("max_per_minute"), settings.max_per_minute) if one is not None]
        budget = dict(settings.budget or {})
        for key, limit in (asked.get("budget") or {}).items():
            budget[key] = min(limit, budget.get(key, limit))
        rate = settings.default_rate if rate is None else rate
        try:
            return Policy(rate, asked.get("when"), min(minutes, default=None), budget or None, group=asked.get("group"))
        except ConfigError as fault:
            raise Refused("live", str(fault)) from None

    def _live(self, judge: LlmJudge, live: bool | Mapping[str, Any]) -> Placed:
        try:
            return place(Placed(judge, self.policy(live)))
        except ConfigError as fault:  # a budget in money, and no price
            raise Refused("live.budget", str(fault)) from None

    # --- what changes ----------------------------------------------------------------------------------------------------

    def register(
        self, project_id: str, config: Mapping[str, Any], threshold: float, live: bool | Mapping[str, Any]
    ) -> tuple[Record, Version, bool]:
        """Create or reuse; returns whether the version is new.

        Raises:
            Refused, RegistryFull, RegistryUnavailable: see there.
        """
        judge = self.judge(config, threshold)
        if live is not False:
            self._live(judge, live)
        start = self._settings.allow_live
        found = self.registry.put(
            project_id, judge.name, judge.info.config_hash, judge.config(), judge.threshold, live, start=start
        )
        self.refresh()
        return found

    def activate(self, record: Record, number: int | None) -> Record | None:
        """Let a version grade, by default the latest.

        Raises:
            Refused: there is no such version, or it can grade here no more.
            NotLive: it was not registered as live, or its twin grades already.
        """
        with self._lock:
            version = self._may_grade(record, number)
            found = self.registry.set_active(record.id, version.version)
            self.refresh()
        return found

    def _may_grade(self, record: Record, number: int | None) -> Version:
        version = record.latest if number is None else record.numbered(number)
        if version is None:
            raise Refused("version", f"there is no version {number}; there are 1 to {record.latest.version}")
        if version.live is False:
            raise NotLive(
                f"version {version.version} of {record.name!r} was not registered as live: register it with live=True, then activate it"
            )
        key = self._placed(record, version).evaluator.info.key
        for other in self._applied():
            if other[1].evaluator.info.key == key and (other[0] is None or other[0].id != record.id):
                whose = "the agent's configuration" if other[0] is None else f"project {other[0].project_id!r}"
                raise NotLive(f"a judge of the same configuration grades already, that of {whose}; pause it first")
        return version

    def pause(self, record: Record) -> Record | None:
        """Let none of its versions grade."""
        found = self.registry.set_active(record.id, None)
        self.refresh()
        return found

    def delete(self, record: Record) -> bool:
        """Forget it, unless one of its versions is active; False where one is."""
        gone = self.registry.delete(record.id) or self.registry.get(record.id) is None
        self.refresh()
        return gone

    def problem(self, record: Record) -> str | None:
        """Why the active version does not grade."""
        return self._problems.get(record.id)

    # --- what grades ------------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Place what is active now."""
        with self._lock:
            self._changes = self.registry.changes()
            placed = [one for _, one in self._applied()]
            self._made = {key: one for key, one in self._made.items() if any(one is used for used in placed)}
            if self._place is not None:
                self._place(placed)

    def _applied(self) -> list[tuple[Record | None, Placed]]:
        found: list[tuple[Record | None, Placed]] = [(None, placed) for placed in self._fixed]
        seen = {placed.evaluator.info.key for placed in self._fixed}
        problems: dict[str, str] = {}
        for record in self.registry.all():
            version = None if record.active is None else record.numbered(record.active)
            if version is None or version.live is False:
                continue
            try:
                placed = self._placed(record, version)
            except Refused as fault:
                problems[record.id] = str(fault)
                continue
            key = placed.evaluator.info.key
            if key in seen:
                problems[record.id] = "a judge of the same configuration grades already"
                continue
            seen.add(key)
            found.append((record, placed))
        for evaluator_id in problems.keys() - self._problems.keys():
            log.warning("a registered judge does not grade", evaluator=evaluator_id, why=problems[evaluator_id])
        self._problems = problems
        return found

    def _placed(self, record: Record, version: Version) -> Placed:
        """The same object as long as nothing changes: what the pipeline knows of it stays then."""
        # Registered under another template it is graded by today's: its scores have the hash that is true of them.
        config = {name: value for name, value in version.config.items() if name != "template"}
        key = (record.id, version.version, version.threshold, repr(version.live))
        placed = self._made.get(key)
        if placed is None:
            judge = self.judge(config, version.threshold).with_version(str(version.version))
            placed = self._made[key] = self._live(judge, version.live)
        return placed

    # --- life ------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Place what is active, and follow what other processes change in the file.

        Raises:
            ConfigError: the file cannot be read.
        """
        try:
            self.refresh()
        except RegistryUnavailable as fault:
            raise ConfigError(f"registry.path: {fault}") from None
        self._thread = threading.Thread(target=self._follow, name="spangrade-registry", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stopping.wait(LOOK_S):
            with _guard.guard("registry.follow"):
                self.look()

    def look(self) -> None:
        """Place anew if another process has changed the file."""
        try:
            if self.registry.changes() != self._changes:
                self.refresh()
        except RegistryUnavailable as fault:
            log.warning("the registry of judges is not followed now", why=str(fault))

    def close(self) -> None:
        """Stop following, close the file."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(5.0)
        self.registry.close()
