"""The demo from start to end: processes up, questions asked, scores read back from the receiver and shown.

the RAG application (this process)  →  the agent, which scores  →  an OTLP receiver, in place of a backend
"""

from __future__ import annotations

import argparse
import logging
import os
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from rich.text import Text

from examples.demo.child_process import REPOSITORY, ChildError
from examples.demo.local_llm import NOT_AVAILABLE, USE_ANOTHER_MODEL
from examples.demo.processes import AGENT_CONFIG, AgentProcess, LlmProcess, ReceiverProcess
from examples.demo.questions import QUESTIONS
from examples.demo.scores import Call, calls_in, what_is_missing
from examples.demo.terminal import Screen, show_call, show_table

HOLD_SECONDS = 300.0  # as agent.yaml says: how long a span may wait for its scores
ANSWER_SECONDS = 90.0  # how long the application waits for the model
EXPORT_SECONDS = 15.0  # how long a scored span may take to arrive

REAL_JUDGE = "SPANGRADE_JUDGE_MODEL and SPANGRADE_JUDGE_API_KEY or SPANGRADE_JUDGE_BASE_URL"


@dataclass(frozen=True)
class Model:
    """Where the application's model is. `repr` leaves the key out."""

    base_url: str
    name: str
    api_key: str
    local: bool

    def __repr__(self) -> str:
        return f"Model({self.name!r} at {self.base_url!r})"


class Asker(threading.Thread):
    """Puts questions to the application, one after the other, as a user of it would.

    A thread of its own, so that the terminal stays alive meanwhile, and a daemon, so that Ctrl-C need not wait for it.
    """

    def __init__(self, bot: object) -> None:
        super().__init__(name="asker", daemon=True)
        self._bot = bot
        self._questions: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._last_end = time.monotonic()
        self.problems: queue.SimpleQueue[str] = queue.SimpleQueue()

    def ask(self, *questions: str) -> None:
        with self._lock:
            self._open += len(questions)
        for question in questions:
            self._questions.put(question)

    def idle_for(self) -> float:
        """Seconds since the last answer; 0 while a question is open."""
        with self._lock:
            return 0.0 if self._open else time.monotonic() - self._last_end

    @property
    def open(self) -> int:
        with self._lock:
            return self._open

    def run(self) -> None:
        while True:
            question = self._questions.get()
            try:
                self._bot.answer(question)  # type: ignore[attr-defined]
            except Exception as error:  # noqa: BLE001 - the span has it too; the demo goes on with the next question
                self.problems.put(f"No answer to {question!r}: {type(error).__name__}: {error}")
            with self._lock:
                self._open -= 1
                self._last_end = time.monotonic()


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description="Spangrade, end to end.")
    parser.add_argument("--once", action="store_true", help="end after the table; exit code 0 only if all scores came")
    once: bool = parser.parse_args(arguments).once

    screen = Screen()
    prepare_environment()
    with ExitStack() as processes:
        try:
            receiver = processes.enter_context(ReceiverProcess())
            screen.say(f"OTLP receiver listens at {receiver.base_url}")
            model = the_model(screen, processes)
            if model is None:
                screen.say("SPANGRADE_LLM_BASE_URL is set; SPANGRADE_LLM_MODEL must then name a model that it serves.")
                return 2
            judge = choose_judge(model)
            agent = the_agent(screen, processes, receiver, judge)
            return ask_and_show(screen, agent, receiver, model, judge, once=once)
        except ChildError as error:
            logging.disable()  # that nothing more can be exported is no news now
            screen.say(str(error), style="red")
            return 1


def prepare_environment() -> None:
    """What the demo needs whatever the environment says; for this process and its children only."""
    for name in ("NO_PROXY", "no_proxy"):  # the demo's own traffic stays on the loopback
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1")))
    for signal in ("", "TRACES_", "LOGS_"):  # what the demo's receiver speaks
        os.environ[f"OTEL_EXPORTER_OTLP_{signal}PROTOCOL"] = "http/protobuf"
    # The demo shows a span as soon as it is scored; the batch exporter's usual 5 s would hide how soon that is.
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "200"
    os.environ.pop("SPANGRADE_CONFIG", None)  # a file for another application


def the_model(screen: Screen, processes: ExitStack) -> Model | None:
    """The model that the environment names, or else the local one, started now."""
    base_url = os.environ.get("SPANGRADE_LLM_BASE_URL")
    if base_url:
        name = os.environ.get("SPANGRADE_LLM_MODEL")
        key = os.environ.get("SPANGRADE_LLM_API_KEY", "")
        return Model(base_url, name, key, local=False) if name else None
    with screen.busy("Loading the weights of the local model") as line:

        def elapsed(seconds: float) -> None:
            if line is not None:
                line.update(Text(f"Loading the weights of the local model: {seconds:.0f} s"))

        try:
            llm = processes.enter_context(LlmProcess(on_wait=elapsed))
        except ChildError as error:
            if error.exit_code == NOT_AVAILABLE:  # then the child has said what else can be done
                raise
            raise ChildError(f"{error}\nTo do without the local model: {USE_ANOTHER_MODEL}", error.exit_code) from error
    screen.say(f"Local model {llm.model} serves at {llm.base_url} (loaded in {llm.facts['load_seconds']} s)")
    return Model(llm.base_url, llm.model, "", local=True)


@dataclass(frozen=True)
class Judge:
    """Which judge it is, in words for the terminal, and the variables that tell the agent. `repr` has no key in it."""

    about: str
    variables: Mapping[str, str] = field(repr=False)


def choose_judge(model: Model) -> Judge:
    """The judge that the environment names, or else the model at hand."""
    name = os.environ.get("SPANGRADE_JUDGE_MODEL")
    if name and (os.environ.get("SPANGRADE_JUDGE_API_KEY") or os.environ.get("SPANGRADE_JUDGE_BASE_URL")):
        return Judge(f"The judge is {name}, as your environment says.", {})
    variables = {
        "SPANGRADE_JUDGE_MODEL": model.name,
        "SPANGRADE_JUDGE_BASE_URL": model.base_url,
        # Also where it is empty: a key that was meant for another endpoint must not go to this one.
        "SPANGRADE_JUDGE_API_KEY": model.api_key or "none",
    }
    if not model.local:
        about = f"The judge is {model.name}, the model that also answers. For another one set {REAL_JUDGE}."
    else:
        about = (
            f"Do not believe the judge here. {model.name} is so small that it judges at chance: measured on two public "
            "test sets, it told right from wrong no better than a coin (AUROC 0.52 and 0.51). It shows that the "
            f"plumbing works: a real HTTP judge, with its errors. For a judge worth reading set {REAL_JUDGE}."
        )
    return Judge(about, variables)


def the_agent(screen: Screen, processes: ExitStack, receiver: ReceiverProcess, judge: Judge) -> AgentProcess:
    """The agent, started now: spans in from the application, scores added, spans out to the receiver."""
    with screen.busy("Starting the agent"):
        agent = processes.enter_context(AgentProcess(sends_to=receiver.base_url, judge=judge.variables))
    screen.say(f"Agent takes spans at {agent.base_url} and scores them as {AGENT_CONFIG.relative_to(REPOSITORY)} says")
    return agent


def ask_and_show(
    screen: Screen, agent: AgentProcess, receiver: ReceiverProcess, model: Model, judge: Judge, *, once: bool
) -> int:
    with screen.busy("Importing the application"):
        # Imported only now: they take a second or two, and the first lines should be on screen before that.
        from openai import OpenAI
        from openinference.instrumentation.openai import OpenAIInstrumentor

        import spangrade as sg
        from examples.demo.rag_app import SupportBot

    # All that the application has to say: where the agent is, and that it leaves the scoring to it.
    sg.configure(service_name="spangrade-demo", endpoint=agent.base_url, score="agent")
    OpenAIInstrumentor().instrument()  # traces the client's calls; nothing of Spangrade in it
    client = OpenAI(base_url=model.base_url, api_key=model.api_key or "none", timeout=ANSWER_SECONDS, max_retries=0)
    asker = Asker(SupportBot(client, model.name))
    asker.start()

    feed = Feed(screen, agent, receiver, asker)
    screen.say(f"the page: {agent.page_url}", style="bold")
    asker.ask(*QUESTIONS)
    feed.show(len(QUESTIONS))

    # The table and the verdict are made of what the receiver has, read afresh.
    calls = calls_in(receiver.spans())
    screen.say("")
    screen.say(judge.about, style="yellow")
    show_table(screen, calls)
    screen.say(f"the page: {agent.page_url}" + (" (until the demo ends, which is now)" if once else ""), style="bold")
    missing = what_is_missing(calls, len(QUESTIONS))
    if once:
        for sentence in missing:
            screen.say(f"Missing: {sentence}", style="red")
        if not missing:
            errors = sum(result.error is not None for call in calls for result in call.by("llm"))
            screen.say(
                f"Read back from the receiver: {len(calls)} root spans, each with 3 metric events and 1 judge event "
                f"({errors} of them a judge error)."
            )
    else:
        take_questions(screen, asker, feed)
    sg.shutdown()
    return 1 if once and missing else 0


class Feed:
    """Prints calls as they arrive at the receiver with their scores."""

    def __init__(self, screen: Screen, agent: AgentProcess, receiver: ReceiverProcess, asker: Asker) -> None:
        self._screen = screen
        self._agent = agent
        self._receiver = receiver
        self._asker = asker
        self._after = 0  # the number of the last span that was read

    def show(self, count: int) -> None:
        """Print the next `count` calls. Gives up when no question is open and the longest possible hold has passed."""
        screen, asker, shown = self._screen, self._asker, 0
        with screen.busy(f"Asking {count} question{'s' if count > 1 else ''}") as line:
            while shown < count and asker.idle_for() < HOLD_SECONDS + EXPORT_SECONDS:
                self._agent.check()
                self._receiver.check()
                for call in self._arrived():
                    shown += 1
                    show_call(screen, call, f"{shown}/{count}, {screen.seconds:.1f} s")
                while not asker.problems.empty():
                    screen.say(asker.problems.get(), style="red")
                if line is not None:
                    answered = count - asker.open
                    line.update(Text(f"{answered} of {count} answered, {shown} scored, {screen.seconds:.0f} s"))

    def _arrived(self) -> list[Call]:
        spans = self._receiver.spans(after=self._after, wait=0.5)
        if spans:
            self._after = spans[-1]["number"]
        return calls_in(spans)


def take_questions(screen: Screen, asker: Asker, feed: Feed) -> None:
    """Answer what is typed, until an empty line, the end of input, or Ctrl-C."""
    screen.say("\nAsk the support pages something yourself; an empty line ends the demo.")
    while True:
        try:
            question = input("> ").strip()
        except EOFError:
            return
        if not question:
            return
        asker.ask(question)
        feed.show(1)
