"""What stands under a secret's name is never recorded, wherever it is; what only sounds like it is data."""

import collections
import dataclasses
import json
import tracemalloc
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretBytes, SecretStr

from spangrade._secrets import HIDDEN, MAX_NAME, is_secret, said
from spangrade._values import captured, snapshot, to_text
from spangrade.tracing import capture
from spangrade.tracing.lazy.span import Attributes

VALUE = "hunter2-hunter2-hunter2"

SECRET = [
    "password",
    "Passwd",
    "PASSPHRASE",
    "pwd",
    "secret",
    "api_key",
    "apikey",
    "apiKey",
    "APIKey",
    "APIKEY",
    "x-api-key",
    "X-API-Key",
    "xApiKey",
    "openaiApiKey",
    "OPENAI_API_KEY",
    "access_key",
    "accessKey",
    "aws_secret_access_key",
    "AccessKey",
    "private_key",
    "private-key",
    "privateKey",
    "client_secret",
    "clientSecret",
    "CLIENT-SECRET",
    "Authorization",
    "authorization",
    "proxy-authorization",
    "Proxy_Authorization",
    "cookie",
    "Cookie",
    "cookies",
    "set-cookie",
    "Set_Cookie",
    "setCookie",
    "credential",
    "credentials",
    "access_token",
    "accessToken",
    "refresh_token",
    "refresh-token",
    "AUTH_TOKEN",
    "authToken",
    "bearer_token",
    "session_token",
    "id_token",
    "idToken",
    "db_password",
    "dbpassword",
    "new.password",
    "password2",
    "API_KEYS",
    "secrets",
    "secret_key",
    "access_tokens",
    "token",
    "github_token",
    "hfToken",
]
DATA = [
    "question",
    "max_tokens",
    "maxTokens",
    "tokens",
    "input_tokens",
    "token_count",
    "tokenizer",
    "key",
    "keys",
    "public_key",
    "keyword",
    "secretary",
    "passwordless",
    "cookie_policy",
    "authorization_url",
    "author",
    "session",
    "id",
    "api",
    "pass",
    "bypass",
    "compass",
    "access",
]


@pytest.mark.parametrize("name", SECRET)
def test_a_secrets_name_is_known_in_every_form(name: str) -> None:
    assert json.loads(to_text({name: VALUE, "q": 1})[0]) == {name: HIDDEN, "q": 1}


@pytest.mark.parametrize("name", DATA)
def test_other_names_are_data(name: str) -> None:
    assert json.loads(to_text({name: VALUE})[0]) == {name: VALUE}


@pytest.mark.parametrize(
    "held",
    [
        {"token": " hello", "logprob": -0.5},
        {"token": "x" * 19},
        {"token": "a text with some words in it"},
        {"token": 50256, "session_tokens": 12, "max_tokens": 5, "pad_token": "<pad>"},
        {"password": None, "secret": False, "cookie": True},
        {"x" * MAX_NAME + "password": VALUE},
    ],
)
def test_a_token_that_is_text_a_count_or_nothing_at_all_is_data(held: Any) -> None:
    assert json.loads(to_text(held)[0]) == held


@dataclasses.dataclass
class Login:
    password: str = VALUE
    user: str = "me"


@dataclasses.dataclass(slots=True)
class Slotted:
    api_key: str = VALUE


class Settings(BaseModel):
    client_secret: str = VALUE
    typed: SecretStr = SecretStr(VALUE)
    raw: SecretBytes = SecretBytes(VALUE.encode())


class Pair(NamedTuple):
    user: str = "me"
    password: str = VALUE


class Name(str):
    __slots__ = ()


OLD = collections.namedtuple("OLD", "token user")

HOLDERS: list[tuple[Any, Any]] = [
    ({"headers": {"Authorization": VALUE}}, {"headers": {"Authorization": HIDDEN}}),
    ([({"a": [{"password": VALUE}]},)], [[{"a": [{"password": HIDDEN}]}]]),
    ({"credentials": {"user": "me", "pin": [VALUE]}}, {"credentials": HIDDEN}),
    ({"password": 1234}, {"password": HIDDEN}),
    ({"password": VALUE.encode()}, {"password": HIDDEN}),
    ({"secret": object()}, {"secret": HIDDEN}),
    (collections.OrderedDict(password=VALUE), {"password": HIDDEN}),
    (collections.defaultdict(str, password=VALUE), {"password": HIDDEN}),
    ({Name("password"): VALUE}, {"password": HIDDEN}),
    ({("password",): VALUE[:5]}, {'["password"]': VALUE[:5]}),
    ({str(n): n for n in range(100)} | {"password": VALUE}, {str(n): n for n in range(100)} | {"password": HIDDEN}),
    (Login(), {"password": HIDDEN, "user": "me"}),
    ({"deep": [Slotted()]}, {"deep": [{"api_key": HIDDEN}]}),
    (
        Settings(),
        {"client_secret": HIDDEN, "typed": "<pydantic.types.SecretStr>", "raw": "<pydantic.types.SecretBytes>"},
    ),
    (SecretStr(VALUE), "<pydantic.types.SecretStr>"),
    (Pair(), ["me", HIDDEN]),
    (OLD(VALUE, "me"), [HIDDEN, "me"]),
    (OLD("word", "me"), ["word", "me"]),
]


@pytest.mark.parametrize(("value", "recorded"), HOLDERS)
def test_a_secret_is_left_out_at_any_depth_of_any_container(value: Any, recorded: Any) -> None:
    assert captured(value) == recorded
    assert VALUE not in to_text(value)[0]


def test_a_hidden_value_is_not_looked_at() -> None:
    class Fights:
        def __getattribute__(self, name: str) -> Any:
            raise SystemError(name)

    assert captured({"secret": Fights(), "password": "x" * 5_000_000}) == {"secret": HIDDEN, "password": HIDDEN}


def test_what_is_only_read_was_written_by_others_and_stays() -> None:
    assert snapshot({"password": VALUE}) == {"password": VALUE}


@pytest.mark.parametrize("kind", ["llm", "chain", "tool", "retriever"])
@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "user", "content": "hi", "api_key": VALUE}]},
        [{"role": "user", "content": [{"type": "text", "text": "hi", "password": VALUE}]}],
        {"password": VALUE},
        [{"content": "a document", "metadata": {"secret": VALUE}}],
        Login(),
    ],
)
def test_no_kind_of_call_writes_it(value: Any, kind: Any) -> None:
    for write in (capture.write_input, capture.write_output):
        sink = Attributes()
        write(sink, kind, value)  # type: ignore[arg-type]
        assert sink
        assert VALUE not in str(sink)


@given(st.text(st.characters(exclude_categories=()), max_size=80), st.text(max_size=30))
def test_any_name_may_be_asked(name: str, value: str) -> None:
    assert is_secret(name, value) in (True, False)
    assert is_secret(name + "_password", value) is (len(name) + 9 <= MAX_NAME)


def test_names_that_differ_from_call_to_call_are_not_kept_for_ever() -> None:
    for n in range(10_000):  # fills the cache
        said(f"{n:064}")
    tracemalloc.start()
    for n in range(10_000, 30_000):
        said(f"{n:064}")
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 2_000_000
