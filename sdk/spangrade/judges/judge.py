"""`LlmJudge`: criteria in plain language, graded by a model over HTTP."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from spangrade._values import snapshot
from spangrade.errors import ConfigError, JudgeError
from spangrade.judges import checks
from spangrade.judges.asking import Asked, Asking
from spangrade.judges.grading import Grading
from spangrade.judges.prompt import FIELDS, TEMPLATE_HASH, Prompt, Rubric, build_prompt
from spangrade.judges.providers import JudgeClient
from spangrade.judges.responses import EvaluatorPreviewResponse, EvaluatorResponse, Registry, previewed
from spangrade.judges.scale import Scale, scale_named
from spangrade.judges.spending import most
from spangrade.model.evaluator import EvaluatorInfo, Target, Verdict, check_name, check_target, hash_config
from spangrade.model.sample import Sample
from spangrade.model.score import FAIL, PASS, Graded, Skip

TEMPERATURE: Final = 0.0
_MODEL_VARIABLES: Final = ("SPANGRADE_JUDGE_MODEL", "LLM_MODEL")
_NO_MODEL: Final = (
    "judge {name!r} has no model: give it one, as in LlmJudge(..., model='gpt-4.1-mini'), "
    "or set SPANGRADE_JUDGE_MODEL (or LLM_MODEL)"
)


@dataclass(frozen=True, eq=False)
class LlmJudge(Asked):
    """A judge: what a good answer looks like, and how it is graded. Immutable; an `Evaluator` of kind ``llm``.

    Attributes:
        name: the score's name.
        criteria: what a good answer looks like, in plain language.
        scale: ``"1-5"`` gives 0, 0.25, 0.5, 0.75, 1; ``"binary"`` gives pass 1, fail 0.
        levels: what a level means, for 1-5 only and as far as wanted: ``{5: "...", 1: "..."}``.
        fields: what the judge sees, of input, output, expected, documents and metadata; output is required. A sample
            without output, or without expected or documents where these are asked for, is skipped.
        examples: at most 5 graded ones, ``{"output": ..., "level": 2}`` or ``{"output": ..., "verdict": "fail"}``,
            optionally with input, expected, reasoning.
        threshold: the pass mark, 0 to 1.
        live: also grade production traffic, at the default rate unless `live` gives another.
        model: the model's name; else ``SPANGRADE_JUDGE_MODEL``, else ``LLM_MODEL``, read when it is needed.
        temperature: 0 unless given; left out for models that refuse it.
        target: what is graded (`with_target`).

    Raises:
        ConfigError: an argument that cannot work, by name, with what would be right.

    Source: facts/contracts.md, "Local metrics, samples, scores, judges".
    """

    name: str
    criteria: str
    scale: str = "1-5"
    levels: Mapping[int, str] | None = None
    fields: tuple[str, ...] = ("input", "output")
    examples: tuple[Mapping[str, Any], ...] = ()
    threshold: float = 0.5
    live: bool = False
    model: str | None = None
    temperature: float | None = None
    target: Target = field(default="root", kw_only=True)
    _asking: Asking = field(default=Asking(), init=False, repr=False)
    _version: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        what = f"judge {check_name(self.name, 'judge')!r}"
        scale = scale_named(self.scale, what)
        self._set(
            name=check_name(self.name, "judge"),
            criteria=checks.text(self.criteria, f"{what}: criteria"),
            levels=checks.levels(self.levels, scale, what),
            fields=checks.fields(self.fields, FIELDS, what),
            examples=checks.examples(self.examples, scale, what),
            threshold=checks.number(self.threshold, 0, 1, f"{what}: threshold"),
            live=checks.flag(self.live, f"{what}: live"),
            model=None if self.model is None else checks.text(self.model, f"{what}: model"),
            target=check_target(self.target, what),
        )
        if self.temperature is not None:
            self._set(temperature=checks.number(self.temperature, 0, 2, f"{what}: temperature"))

    @property
    def info(self) -> EvaluatorInfo:
        """Who grades. The hash follows the environment's model until `place` has pinned it."""
        model = self.resolved_model()
        cached = self.__dict__.get("_info")
        if cached is None or cached[0] != model:
            requires = ("output", *(name for name in ("expected", "documents") if name in self.fields))
            info = EvaluatorInfo(
                name=self.name,
                kind="llm",
                version=self._version,
                config_hash=hash_config(self.config()),
                requires=requires,
                threshold=self.threshold,
                target=str(self.target),
            )
            cached = (model, info)
            self._set(_info=cached)
        return cast("EvaluatorInfo", cached[1])

    @property
    def is_async(self) -> bool:
        """False: `evaluate` blocks, on a thread of ours."""
        return False

    def config(self) -> dict[str, Any]:
        """What identifies the judge, as plain JSON. Scores of two configurations are not one metric.

        Not in it: threshold, live and rate. ``model`` is the resolved one, None when there is none yet;
        ``temperature`` is the effective one.
        """
        return {
            "name": self.name,
            "criteria": self.criteria,
            "scale": self.scale,
            "levels": {str(n): text for n, text in sorted((self.levels or {}).items())},
            "fields": [name for name in FIELDS if name in self.fields],
            "examples": [snapshot(example) for example in self.examples],
            "model": self.resolved_model(),
            "temperature": self._temperature(),
            "template": TEMPLATE_HASH,
            "target": self.target,
        }

    def resolved_model(self) -> str | None:
        """The judge's own model, else the environment's, else None."""
        if self.model is not None:
            return self.model
        found = (os.environ.get(name, "").strip() for name in _MODEL_VARIABLES)
        return next((model for model in found if model), None)

    def with_target(self, target: Target) -> "LlmJudge":
        """A copy that grades another target: root, llm, retriever, tool, agent, ..., or a rule (`spangrade.model.target`)."""
        return self._copy(target=target)

    def with_pinned_model(self) -> "LlmJudge":
        """A copy whose model no longer follows the environment.

        Raises:
            ConfigError: when neither the judge nor the environment names a model.
        """
        model = self.resolved_model()
        if model is None:
            raise ConfigError(_NO_MODEL.format(name=self.name))
        return self._copy(model=model)

    def models(self) -> "list[LlmJudge]":
        """The judges that ask a model: this one."""
        return [self]

    def most(self, sample: Sample) -> float | None:
        """US dollars that grading ``sample`` can cost at most; None when the price is unknown."""
        price = self.price
        return None if price is None else most(self._prompt(sample), self._scale(), price)

    def with_version(self, version: str) -> "LlmJudge":
        """A copy whose scores say this version; a registry numbers its judges' configurations so."""
        new = self._copy()
        new._set(_version=checks.text(version, f"judge {self.name!r}: version"))
        return new

    def evaluate(self, sample: Sample) -> Verdict:
        """Grade one sample. Blocks for up to `timeout` seconds; nothing that it does is traced.

        Raises:
            Skip: a required field is empty.
            JudgeError: no verdict, with its kind; kind ``configuration`` when model or endpoint are not set.
        """
        self._check_required(sample)
        found = self._asking.answer(self._prompt(sample), self._model(), self._scale(), self._temperature())
        passed = found.score >= self.threshold
        graded = Graded(self.name, found.score, PASS if passed else FAIL, passed, found.reasoning or None)
        return Verdict((graded,), found.details)

    def preview(
        self,
        *,
        output: Any,
        input: Any = None,  # noqa: A002 - the Sample's word
        expected_output: Any = None,
        documents: Iterable[Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        client: JudgeClient | Registry | None = None,
        project_id: str | None = None,
    ) -> EvaluatorPreviewResponse:
        """Grade one sample now, in this process or on an agent; nothing is stored, sampled or emitted.

        Args:
            output: the answer to grade; the other fields as in `Sample`. Documents may be texts.
            client: a `RegistryClient` has the agent grade it, with the agent's endpoints and keys. Another client grades here,
                instead of the judge's own or the environment's endpoint.
            project_id: the registry's namespace; grading here does not look at it.

        Never raises for what a judge or an agent may fail at: the response's ``error`` says it.
        """
        shown = [d if isinstance(d, Mapping) else {"content": d} for d in documents or ()]
        if isinstance(client, Registry):
            given = {"input": input, "output": output, "expected": expected_output, "documents": shown}
            return previewed(client, self, {**given, "metadata": dict(metadata or {})}, project_id)
        sample = Sample(input, output, expected_output, cast("Any", shown), metadata=dict(metadata or {}))
        return self.previewed(sample, client)[0]

    def previewed(
        self, sample: Sample, client: JudgeClient | None = None
    ) -> tuple[EvaluatorPreviewResponse, Grading | JudgeError | Skip]:
        """`preview` in this process; and how it ended, which says what it did cost (`prices.cost_of`)."""
        prompt: Prompt | None = None
        end: Grading | JudgeError | Skip
        score = explanation = error = None
        try:
            self._check_required(sample)
            prompt = self._prompt(sample)
            end = found = self._asking.ask(prompt, self._model(), self._scale(), self._temperature(), client)
            score, explanation = found.score, found.reasoning
        except Skip as skip:
            end, error = skip, f"skipped: {skip}"
        except JudgeError as fault:
            end, error = fault, f"{fault.kind}: {fault}"
        said = f"{prompt.system}\n\n{prompt.user}" if prompt else ""
        return EvaluatorPreviewResponse(score, explanation, said, error), end

    def register(self, client: Registry | None = None, project_id: str | None = None) -> EvaluatorResponse:
        """Create the judge in an agent's registry, or reuse the one that has the same `config()` there.

        A changed configuration makes a new version. The latest version of a judge with ``live=True`` grades production
        traffic once it is active: at once where the agent's configuration allows it (``registry.allow_live``), else when
        somebody activates it. Model, endpoint and key are the agent's: the judge's model is a name that the agent must serve.

        Args:
            client: a `RegistryClient`; by default one for ``SPANGRADE_AGENT_URL`` with ``SPANGRADE_TOKEN``.
            project_id: a namespace, default ``default``: judges of two projects may have the same name.

        Raises:
            ConfigError: the agent refuses the judge, the token or the address; the message is its sentence.
            JudgeError: kind connection, timeout, http_status or unparseable: the agent cannot be asked.
        """
        if client is None:
            from spangrade.judges.client import RegistryClient

            with RegistryClient() as made:
                return made.register(self, project_id)
        if not isinstance(client, Registry):
            raise ConfigError(
                f"judge {self.name!r}: register takes a RegistryClient, as in register(RegistryClient('http://agent:8080')), "
                f"not {type(client).__name__}"
            )
        return client.register(self, project_id)

    def _model(self) -> str:
        model = self.resolved_model()
        if model is None:
            raise JudgeError("configuration", _NO_MODEL.format(name=self.name))
        return model

    def _prompt(self, sample: Sample) -> Prompt:
        return build_prompt(Rubric(self.criteria, self._scale(), self.levels or {}, self.fields, self.examples), sample)

    def _check_required(self, sample: Sample) -> None:
        missing = sample.missing(self.info.requires)
        if missing:
            raise Skip(f"nothing in {', '.join(missing)}")

    def _scale(self) -> Scale:
        return scale_named(self.scale, "judge")

    def _temperature(self) -> float:
        return TEMPERATURE if self.temperature is None else self.temperature

    def asked(self, **changes: Any) -> "LlmJudge":
        """See `Asked`."""
        new = self._copy()
        new._set(_asking=replace(self._asking, **changes))
        return new

    def _copy(self, **changes: Any) -> "LlmJudge":
        new = replace(self, **changes)
        new._set(_asking=self._asking, _version=self._version)
        return new

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)
