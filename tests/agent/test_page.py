"""The page's routes: what they show, to whom, and the headers that go with it."""

import json
import re
import shlex
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Sequence
from html import unescape
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord, SpanRef
from spangrade.model.sample import Sample
from spangrade.model.score import Graded
from spangrade.model.span import SpanData
from spangrade.samples.extract import extract
from spangrade.samples.reading import Call, Reading
from spangrade.scoring.outcomes import Ledger
from spangrade_agent.page.app import page_app
from spangrade_agent.page.asgi import AsgiApp
from spangrade_agent.page.settings import PageSettings, host_of, is_loopback
from spangrade_agent.page.welcome import by_hand
from spangrade_agent.store import SampleStore, sample_id

from .asgi import Reply, ask

OVERLAP = EvaluatorInfo("overlap", "code", "2", "aaaa", threshold=0.5)
HELPFUL = EvaluatorInfo("helpful", "llm", "1", "bbbb", threshold=0.75)
TOKEN = "a-token-of-sixteen"
SETTINGS = PageSettings(
    destinations=["http://user:pa55@otelcol:4317/v1?key=abc"],
    receivers={"grpc": "127.0.0.1:4317", "http": "127.0.0.1:4318"},
    evaluators=[OVERLAP, HELPFUL],
)
AWAY = PageSettings(listen="0.0.0.0:8080", token=TOKEN, hosts=["pages.example"])


class Clock:
    """Half past."""

    def monotonic(self) -> float:
        return 100.0

    def time_ns(self) -> int:
        return 1_800_000_000_000_000_000


def filled(count: int = 1, **settings: Any) -> tuple[SampleStore, Ledger]:
    """A store with graded samples, the counts that go with them."""
    store, ledger = SampleStore(**settings), Ledger()
    for number in range(1, count + 1):
        key = (number, number, "root")
        end_ns = Clock().time_ns() - 90_000_000_000
        span = SpanData(
            *key[:2], None, f"answer {number}", end_ns - 10**9, end_ns, {}, resource={"service.name": "shop"}
        )
        documents = [{"id": "kb/7", "content": "Within three days.", "score": 0.83}]
        sample = Sample("When does it come?", "Tomorrow, by drone.", documents=documents)
        store.began(key, Call(span, Reading("t", kind="llm", model="small")), sample, [OVERLAP, HELPFUL], partial=True)
        ref = SpanRef(*key[:2])
        low = Graded("overlap", 0.25, "fail", False, "in no document: drone")
        broken = Graded("helpful", explanation="gave no result within 10 s")
        ends = [
            (OVERLAP, Outcome.SCORED, "", ScoreRecord(ref, OVERLAP, low, 5)),
            (HELPFUL, Outcome.TIMEOUT, "timeout", ScoreRecord(ref, HELPFUL, broken, 5, 0.05, error_type="timeout")),
        ]
        for info, outcome, reason, record in ends:
            ledger.met(info)
            ledger.ended(info, outcome, reason)
            store.ended(key, info, outcome, reason, [record], record.probability)
        ledger.delivered(OVERLAP, "span_event")
    assert store.flush(30)
    return store, ledger


def page(store: SampleStore | None, ledger: Ledger | None = None, settings: PageSettings = SETTINGS) -> AsgiApp:
    """The application under test."""
    return page_app(store, ledger or Ledger(), settings, Clock())


# --- what it shows ------------------------------------------------------------------------------------------------------


def test_the_front_page_shows_samples_and_what_was_said_of_them() -> None:
    reply = ask(page(*filled()))
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    shown = " ".join(reply.text.split())
    for said in (
        "When does it come?",
        "Tomorrow, by drone.",
        "Within three days.",
        "kb/7 score 0.83",
        "answer 1 llm partial shop small 90 s ago",
        "overlap ✗ fail 0.25 in no document: drone metric version 2 passes at 0.5 or more every sample",
        "helpful ! timeout gave no result within 10 s",
        "1 in 20, p = 0.05",
        "Relay spans go on to http://otelcol:4317/v1 with their scores",
        "Scores by overlap, helpful",
        "text as it came",
    ):
        assert said in shown
    assert "pa55" not in reply.body
    assert "key=abc" not in reply.body


def test_the_counts_are_there_with_reasons_and_carriers() -> None:
    shown = " ".join(ask(page(*filled(3))).text.split())
    assert "Evaluator Met Scored Error Timeout Pending Delivered helpful 3 0 0 3 0 0 overlap 3 3 0 0 0 3" in shown
    assert "delivered by span_event 3" in shown


def test_the_newest_stand_first_and_older_ones_are_a_link_away() -> None:
    app = page(*filled(60))
    seen: list[int] = []
    target = "/"
    for _ in range(3):
        body = ask(app, target).body
        seen += [int(number) for number in re.findall(r">answer (\d+)</a>", body)]
        older = re.search(r'href="([^"]+)">older', body)
        target = unescape(older[1]) if older else ""
    assert seen == list(range(60, 0, -1))
    assert target == ""


def test_one_evaluator_or_result_can_be_picked() -> None:
    store, ledger = filled()
    app = page(store, ledger)
    assert "answer 1" in ask(app, "/?evaluator=overlap&label=fail").text
    picked = ask(app, "/?evaluator=overlap&label=pass")
    assert "answer 1" not in picked.text
    assert "No sample kept here is like that." in picked.text
    assert '<option value="overlap" selected>' in picked.body


def test_refreshing_is_off_and_can_be_turned_on() -> None:
    app = page(*filled())
    assert "http-equiv" not in ask(app).body
    assert '<meta http-equiv="refresh" content="5">' in ask(app, "/?refresh=5").body


def test_one_sample_has_its_whole_story() -> None:
    shown = ask(page(*filled()), f"/samples/{sample_id((1, 1, 'root'))}")
    assert shown.status == 200
    for said in (f"{1:032x}", f"{1:016x}", "score id", "aaaa", "Tomorrow, by drone.", "Target root", "Took 1 s"):
        assert said in " ".join(shown.text.replace("\u00a0", " ").split())


@pytest.mark.parametrize("path", ["/samples/x", "/samples/", "/x", "/samples/../api/samples", "//evil.example"])
def test_what_is_not_there_is_404_without_an_echo(path: str) -> None:
    reply = ask(page(*filled()), path)
    assert reply.status == 404
    assert "evil" not in reply.body


def test_an_empty_page_says_how_to_send_spans_here() -> None:
    shown = ask(page(SampleStore())).text
    assert "No call has come yet" in shown
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318" in shown
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317" in shown


@pytest.mark.parametrize(
    ("host", "shown_as"), [("pages.example:8080", "pages.example:4318"), ("[2001:db8::7]:8080", "[2001:db8::7]:4318")]
)
def test_a_receiver_that_listens_everywhere_is_shown_by_the_pages_own_name(host: str, shown_as: str) -> None:
    settings = PageSettings("0.0.0.0:8080", TOKEN, ["pages.example"], receivers={"http": "0.0.0.0:4318"})
    reply = ask(page(SampleStore(), settings=settings), host=host, authorization=f"Bearer {TOKEN}")
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT=http://{shown_as}\n" in reply.text


def test_the_command_to_try_it_sends_a_call_that_is_read() -> None:
    """The shell runs it with a curl that prints what it was given."""
    script = "curl() { printf '%s\\n' \"$@\"; }\n" + "\n".join(by_hand("http://127.0.0.1:4318"))
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert printed[0] == "http://127.0.0.1:4318/v1/traces"
    (span,) = json.loads(printed[-1])["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len(bytes.fromhex(span["traceId"])) == 16
    assert len(bytes.fromhex(span["spanId"])) == 8
    start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    assert end - start == 500_000_000
    attributes = {a["key"]: a["value"]["stringValue"] for a in span["attributes"]}
    call = extract(SpanData(1, 2, None, span["name"], start, end, attributes))
    assert call is not None
    assert (call.kind, call.reading.input) == ("llm", "When does my parcel arrive?")
    assert shlex.split(by_hand("http://h")[0])


def test_without_text_the_page_says_so_and_shows_the_scores() -> None:
    shown = ask(page(*filled(content="none"))).text
    assert "Text is not kept here (store.content: none)" in shown
    assert "drone" not in shown
    assert "✗ fail" in shown


def test_what_came_too_fast_to_be_kept_is_said_samples_and_results_apart() -> None:
    entered, go = threading.Event(), threading.Event()

    def hangs(text: str) -> str:
        entered.set()
        assert go.wait(30)
        return text

    store = SampleStore(redact=hangs)
    span = SpanData(1, 1, None, "answer", 0, 1, {})
    call, sample = Call(span, Reading("t", kind="llm")), Sample("x" * 10_000_000, "a")
    assert "too fast" not in ask(page(store)).text
    store.began((1, 1, "root"), call, sample, [OVERLAP])
    assert entered.wait(30)
    for number in (2, 3, 4):
        store.began((number, number, "root"), call, sample, [OVERLAP])
    shown = ask(page(store)).text
    assert "3 more came too fast to be redacted and kept" in shown
    assert "pending" not in shown
    long = Graded("overlap", 0.25, "fail", False, "x" * 20_000_000)
    for _ in range(3):  # the first has the room that is spared for results, the others none
        store.ended((1, 1, "root"), OVERLAP, Outcome.SCORED, "", [ScoreRecord(SpanRef(1, 1), OVERLAP, long, 5)], 1.0)
    shown = ask(page(store)).text
    assert "2 results of kept samples came too fast too: pending for good" in shown
    go.set()
    assert store.close(30)


def test_without_a_store_the_counts_are_still_there() -> None:
    _, ledger = filled()
    app = page(None, ledger)
    shown = ask(app).text
    assert "Samples are not kept (store: off)" in shown
    assert "overlap" in shown
    assert ask(app, "/api/samples").json == {"samples": [], "next": None}
    assert ask(app, f"/samples/{sample_id((1, 1, 'root'))}").status == 404


# --- JSON ---------------------------------------------------------------------------------------------------------------


def test_samples_as_json_can_be_paged_through() -> None:
    app = page(*filled(5))
    first = ask(app, "/api/samples?limit=3").json
    rest = ask(app, f"/api/samples?limit=3&before={first['next']}").json
    names = [sample["span_name"] for sample in (*first["samples"], *rest["samples"])]
    assert names == [f"answer {number}" for number in (5, 4, 3, 2, 1)]
    assert rest["next"] is None


def test_one_sample_as_json_has_everything() -> None:
    name = sample_id((1, 1, "root"))
    reply = ask(page(*filled()), f"/api/samples/{name}")
    assert reply.headers["content-type"] == "application/json"
    sample = reply.json
    assert (sample["id"], sample["input"], sample["service"]) == (name, "When does it come?", "shop")
    assert sample["documents"] == [{"content": "Within three days.", "id": "kb/7", "score": 0.83, "metadata": None}]
    overlap, helpful = sample["results"]
    assert (overlap["value"], overlap["label"], overlap["passed"], overlap["version"]) == (0.25, "fail", False, "2")
    assert (helpful["value"], helpful["error_type"], helpful["probability"]) == (None, "timeout", 0.05)


def test_outcomes_as_json_add_up() -> None:
    (helpful, overlap) = ask(page(*filled(2)), "/api/outcomes").json["evaluators"]
    assert helpful["outcomes"] == [{"outcome": "timeout", "reason": "timeout", "count": 2}]
    assert (overlap["evaluator"], overlap["key"]) == ("overlap", "overlap@aaaa")
    assert overlap["met"] == overlap["pending"] + sum(one["count"] for one in overlap["outcomes"])
    assert overlap["delivered"] == {"span_event": 2}


@pytest.mark.parametrize(
    "target",
    [*(f"/api/samples?limit={n}" for n in ("0", "501", "x", "-1", "²")), "/?refresh=1", f"/?{'&'.join(['a=b'] * 100)}"],
)
def test_a_query_that_cannot_be_meant_is_400(target: str) -> None:
    assert ask(page(SampleStore()), target).status == 400


# --- who may look -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "LOCALHOST."])
def test_the_loopbacks_names_are_answered(host: str) -> None:
    assert ask(page(SampleStore()), host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8080", "192.168.1.7:8080", "[::2]"],
)
def test_another_name_is_refused_with_a_sentence(host: str | None) -> None:
    store, ledger = filled()
    reply = ask(page(store, ledger), host=host)
    assert reply.status == 421
    assert "page.hosts" in reply.body
    assert "drone" not in reply.body


def test_two_host_headers_are_refused() -> None:
    reply = ask(page(SampleStore()), host="localhost", HOST="evil.example")
    assert reply.status == 421


@pytest.mark.parametrize("host", ["pages.example", "10.1.2.3:8080", "localhost"])
def test_a_listener_for_others_answers_to_configured_names_and_to_addresses(host: str) -> None:
    app = page(SampleStore(), settings=AWAY)
    assert ask(app, host=host, authorization=f"Bearer {TOKEN}").status == 200
    assert ask(app, host="evil.example", authorization=f"Bearer {TOKEN}").status == 421


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:8080", "[::]:8080", "192.168.1.7:8080", "agent.internal:8080", "8080", ":8080"]
)
def test_a_listener_for_others_needs_a_token(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"page\.token is not set"):
        PageSettings(listen=listen)


@pytest.mark.parametrize("listen", ["127.0.0.1:8080", "127.8.8.8:1", "[::1]:8080", "localhost:8080"])
def test_on_the_loopback_none_is_needed(listen: str) -> None:
    assert PageSettings(listen=listen).token is None


@pytest.mark.parametrize(
    "token", ["", "   ", "sh0rt-secret", "with a blank in the middle", "ünïcödé-ünïcödé-ünïcödé", "a" * 20 + "\n"]
)
def test_a_token_that_cannot_work_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(ConfigError, match=r"page\.token") as caught:
        PageSettings(listen="0.0.0.0:8080", token=token)
    assert not token.strip() or token.strip() not in str(caught.value)
    assert TOKEN not in repr(AWAY)


@pytest.mark.parametrize("target", ["/", "/x", "/samples/x", "/?token=wrong", f"/?token={TOKEN}x", "/?token="])
def test_without_the_token_there_is_a_form_and_nothing_else(target: str) -> None:
    store, ledger = filled()
    reply = ask(page(store, ledger, AWAY), target, host="10.0.0.1")
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert '<input type="password" name="token"' in reply.body
    assert not [word for word in ("drone", "overlap", "0.1.0") if word in reply.body]


def test_a_program_without_the_token_gets_json() -> None:
    reply = ask(page(*filled(), AWAY), "/api/samples", host="10.0.0.1")
    assert reply.status == 401
    assert "page.token" in reply.json["error"]


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer  {TOKEN} "])
def test_the_token_opens_everything(given: str) -> None:
    app = page(*filled(), AWAY)
    for target in ("/", "/api/samples", f"/samples/{sample_id((1, 1, 'root'))}"):
        assert ask(app, target, host="10.0.0.1", authorization=given).status == 200


@pytest.mark.parametrize("given", ["Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer", "Bearer \xff"])
def test_another_authorization_does_not(given: str) -> None:
    assert ask(page(SampleStore(), settings=AWAY), host="10.0.0.1", authorization=given).status == 401


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_it() -> None:
    app = page(*filled(), AWAY)
    reply = ask(app, f"/?label=fail&token={TOKEN}&refresh=5", host="10.0.0.1")
    assert (reply.status, reply.headers["location"]) == (303, "/?label=fail&refresh=5")
    cookie = reply.headers["set-cookie"]
    assert TOKEN not in cookie
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    pair = cookie.partition(";")[0]
    assert ask(app, "/?label=fail", host="10.0.0.1", cookie=f'odd"; other=1; {pair}; last=2').status == 200
    assert ask(app, "/", host="10.0.0.1", cookie=f"{pair}0").status == 401
    assert ask(app, "/", host="10.0.0.1", cookie=f"spangrade_page={TOKEN}").status == 401


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "/a\r\nset-cookie: x=y"])
def test_the_way_on_stays_here(path: str) -> None:
    reply = ask(page(SampleStore(), settings=AWAY), f"{path}?token={TOKEN}", host="10.0.0.1")
    assert reply.status == 303
    location = reply.headers["location"]
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))
    assert "\r" not in location


def test_a_token_on_the_loopback_is_asked_for_too() -> None:
    app = page(SampleStore(), settings=PageSettings(token="short"))
    assert ask(app).status == 401
    assert ask(app, authorization="Bearer short").status == 200


@pytest.mark.parametrize(
    ("authority", "host", "loopback"),
    [
        ("127.0.0.1:8080", "127.0.0.1", True),
        ("[::1]:80", "::1", True),
        ("::1", "::1", True),
        ("Local.Example.:80", "local.example", False),
        ("localhost.example", "localhost.example", False),
        ("", "", False),
    ],
)
def test_an_authority_is_read_as_its_host(authority: str, host: str, loopback: bool) -> None:
    assert host_of(authority) == host
    assert is_loopback(host) is loopback


# --- every answer -------------------------------------------------------------------------------------------------------


def _every_kind_of_answer() -> Sequence[tuple[str, Reply]]:
    app, away = page(*filled()), page(SampleStore(), settings=AWAY)
    return [
        ("page", ask(app)),
        ("sample", ask(app, f"/samples/{sample_id((1, 1, 'root'))}")),
        ("json", ask(app, "/api/samples")),
        ("404", ask(app, "/x")),
        ("400", ask(app, "/api/samples?limit=x")),
        ("421", ask(app, host="evil.example")),
        ("401", ask(away, host="10.0.0.1")),
        ("303", ask(away, f"/?token={TOKEN}", host="10.0.0.1")),
    ]


def test_every_answer_is_safe_to_show_and_kept_nowhere() -> None:
    for name, reply in _every_kind_of_answer():
        policy = dict(part.strip().partition(" ")[::2] for part in reply.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'", name
        assert policy["frame-ancestors"] == "'none'", name
        assert policy["base-uri"] == "'none'", name
        assert policy["style-src"].startswith("'sha256-"), name
        assert "unsafe" not in reply.headers["content-security-policy"], name
        assert reply.headers["x-content-type-options"] == "nosniff", name
        assert reply.headers["referrer-policy"] == "no-referrer", name
        assert reply.headers["cache-control"] == "no-store", name


def test_a_page_asks_for_nothing_from_anywhere() -> None:
    for name, reply in _every_kind_of_answer():
        assert not re.findall(r"<script|<img|<link|<iframe|\bsrc=|url\(|@import", reply.body), name
        assert all(address.startswith("/") for address in re.findall(r'(?:href|action)="([^"]*)"', reply.body)), name


def test_only_reading_is_possible() -> None:
    app = page(SampleStore())
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert ask(app, method=method).status == 405
    head = ask(app, method="HEAD")
    assert (head.status, head.body) == (200, "")
    assert int(head.headers["content-length"]) == len(ask(app).body.encode())


def test_a_fault_of_ours_is_a_500_without_its_text(swallowed_faults: list[Any]) -> None:
    class Broken(Ledger):
        def snapshot(self) -> Any:
            raise RuntimeError("users' text")

    reply = ask(page(SampleStore(), Broken()))
    assert reply.status == 500
    assert "users' text" not in reply.body
    assert [where for where, _ in swallowed_faults] == ["page"]
    swallowed_faults.clear()


def test_it_is_served_over_a_real_socket() -> None:
    import uvicorn

    config = uvicorn.Config(page(*filled()), log_config=None, access_log=False)
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            with urllib.request.urlopen(f"{address}/?label=fail", timeout=30) as reply:
                assert reply.status == 200
                assert b"Tomorrow, by drone." in reply.read()
            with urllib.request.urlopen(f"{address}/api/outcomes", timeout=30) as reply:
                assert len(json.load(reply)["evaluators"]) == 2
        finally:
            server.should_exit = True
            thread.join(30)
    assert not thread.is_alive()
