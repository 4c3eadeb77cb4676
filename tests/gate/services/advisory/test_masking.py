"""Nothing that looks sensitive is sent to an upstream, and ordinary facts are."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from gate.encoding.canonical import canonical
from gate.records.request import read_request
from gate.services.advisory import masking
from gate.services.advisory.masking import MASKED, is_sensitive_name, is_sensitive_text
from gate.services.advisory.questions import read_question
from tests.reference.strategies import json_texts, json_values
from tests.support.samples import CASES, same_json

_CASES: Final = json.loads((CASES / "advisory_masking.json").read_text())
NAMES: Final[dict[str, list[str]]] = _CASES["names"]
TEXTS: Final[dict[str, list[str]]] = _CASES["texts"]


def mask(value: Any) -> Any:
    return masking.mask(value)


# The words of names, to be spelled in every way.
WORDS: Final = (
    ("api", "key"),
    ("customer", "password"),
    ("auth",),
    ("client", "secret"),
    ("refresh", "token"),
    ("card", "number"),
    ("iban",),
    ("employee", "ssn"),
    ("date", "of", "birth"),
    ("x", "session", "id"),
)
SPELLINGS: Final = (
    lambda words: words[0] + "".join(map(str.capitalize, words[1:])),
    lambda words: "".join(map(str.capitalize, words)),
    "-".join,
    "_".join,
    lambda words: "_".join(words).upper(),
    lambda words: "-".join(map(str.capitalize, words)),
    " ".join,
    ".".join,
)
# Each holds the canary, and is known by its form alone.
FORMS: Final = (
    "dgk_0123456789abcdef01234567_{}",
    "-----BEGIN RSA PRIVATE KEY-----\n{}",
    "eyJhbGciOiJIUzI1NiJ9.eyJ{}.c2ln",
    "ghp_{}",
    "github_pat_{}",
    "glpat-{}",
    "sk_live_{}",
    "rk_test_{}",
    "xoxb-{}",
    "sk-ant-{}",
    "AKIA{}",
    "AIzaSyD-0123456789{}",
    "hf_0123456789{}",
    "npm_0123456789{}",
    "pypi-AgEIcHlw{}",
    "SG.0123456789abcdefghijkl.{}",
    "whsec_{}",
    "ya29.{}",
    "sk-or-v1-{}",
    "sk-0123456789abcdefghij{}",
    "https://hooks.slack.com/services/T0/B0/{}",
    "AccountName=a;AccountKey={}==",
    "curl -u bob:{} crm.example",
    "password\uff1a{}",
    "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000 of {}",
    "4111\u200b1111\u200b1111\u200b1111 of {}",
    "Authorization: Bearer {}",
    "https://user:{}@crm.example/",
    "postgresql://gate:{}@db/gate",
    "https://crm.example/?access_token={}",
    "https://crm.example/#a=1&api%5Fkey={}",
    "password={}",
    "api-key: {}",
    '{{"clientSecret": "{}"}}',
    "the password is {}",
    "card 4111 1111 1111 1111 of {}",
    "DE89 3704 0044 0532 0130 00 of {}",
)
MAILS: Final = ("{}", "Hi Ann,\n\nhere it is: {}\n\nRegards,\nBob", "<p>{}</p>", "> > {}\n> thanks", "a; {} ")
# Known only where nothing is around them.
BARE: Final = ("Bearer {}", "  bearer {} ")


@pytest.mark.parametrize("name", NAMES["sensitive"])
def test_a_sensitive_name_masks_everything_beneath_it(name: str) -> None:
    secret: Any
    for secret in ("k-1", 4711, 47.5, ["k-1", 2], {"k-1": True}, {"a": {"b": [{"c": "k-1"}]}}, [[["k-1"]]]):
        if not isinstance(secret, int | float):
            assert mask({name: secret}) == {name: MASKED}
        assert MASKED in json.dumps(mask([{"deep": {name: {"x": secret}}}]))
    shown: Any
    for shown in (None, True, False, "", [], {}):
        assert same_json(mask({name: shown}), {name: shown})


@pytest.mark.parametrize("name", NAMES["ordinary"])
def test_an_ordinary_name_masks_nothing(name: str) -> None:
    context = {name: "yes", "deep": [{name: {"value": "gold", "count": 3, "at": "2026-11-27"}}]}
    assert mask(context) == context


@pytest.mark.parametrize("text", TEXTS["sensitive"])
def test_a_text_that_holds_a_secret_is_masked_under_every_name(text: str) -> None:
    assert is_sensitive_text(text)
    assert mask({"note": [text], "more": 1}) == {"note": [MASKED], "more": 1}
    assert mask({text: 1}) == {f"{MASKED} 1": MASKED}


@pytest.mark.parametrize("text", TEXTS["ordinary"])
def test_an_ordinary_text_is_sent(text: str) -> None:
    assert mask({"note": text}) == {"note": text}


def test_a_number_under_a_plural_is_a_count_and_under_a_singular_a_secret() -> None:
    counts = {"tokens": 512, "maxTokens": 512, "api_keys": 3, "cookies": 2, "creditCards": 2, "tests": {"pass": 3}}
    assert mask(counts) == counts
    assert mask(
        {"token": 512, "pin": 4711, "passwords": 4711, "tokens": [512], "tokens ": {"a": 512}}
    ) == dict.fromkeys(("token", "pin", "passwords", "tokens", "tokens "), MASKED)


def test_a_card_number_may_be_a_number() -> None:
    assert mask([4111111111111111, 4111111111111111.0, 4111111111111112]) == [MASKED, MASKED, 4111111111111112]


def test_a_name_beside_a_value_counts_as_its_name() -> None:
    headers = [
        {"name": "Authorization", "value": "k-1"},
        {"key": "clientSecret", "value": {"k-1": 1}, "enabled": True},
        {"name": "accept", "value": "text/html"},
    ]
    assert mask(headers) == [
        {"name": "Authorization", "value": MASKED},
        {"key": "clientSecret", "value": MASKED, "enabled": True},
        {"name": "accept", "value": "text/html"},
    ]


@pytest.mark.parametrize(
    "pair",
    [
        {"Name": "Authorization", "Value": "k-1"},
        {"Key": "password", "Value": ["k-1"]},
        {"NAME": "password", "VALUE": "k-1"},
        {"\uff4eame": "password", "\uff56alue": "k-1"},
        {"id": "password", "value": "k-1"},
        {"Header": "x-api-key", "Content": {"x": "k-1"}},
    ],
)
def test_a_pair_is_one_however_its_names_are_spelled(pair: dict[str, Any]) -> None:
    name, value = pair
    assert mask([pair]) == [{name: pair[name], value: MASKED}]
    assert mask({name: "color", value: "red"}) == {name: "color", value: "red"}


def test_the_name_above_belongs_to_a_name() -> None:
    context = {
        "card": {"number": "12", "type": "visa"},
        "passport": [{"number": "C01", "country": "DE"}],
        "CARDS": [{"number": "12", "type": "visa"}, [{"number": "12"}]],
        "orders": [{"number": "12"}],
        "number": 7,
    }
    assert mask(context) == {
        "card": {"number": MASKED, "type": "visa"},
        "passport": [{"number": MASKED, "country": "DE"}],
        "CARDS": [{"number": MASKED, "type": "visa"}, [{"number": MASKED}]],
        "orders": [{"number": "12"}],
        "number": 7,
    }


def test_a_name_that_is_a_secret_takes_the_place_of_no_other() -> None:
    context = {f"{MASKED} 1": "a", "password=hunter2": "b", "token=abc": "c", f"{MASKED} 3": "d"}
    assert mask(context) == {f"{MASKED} 1": "a", f"{MASKED} 2": MASKED, f"{MASKED} 4": MASKED, f"{MASKED} 3": "d"}


def secret_names() -> SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(NAMES["sensitive"]),
        st.builds(lambda words, spell: str(spell(words)), st.sampled_from(WORDS), st.sampled_from(SPELLINGS)),
    )


@st.composite
def secrets_in_form(draw: DrawFn, canary: str) -> str:
    if draw(st.integers(0, 9)) == 0:
        encoded = base64.b64encode(f"user:{canary}".encode()).decode()
        return draw(st.sampled_from([form.format(canary) for form in BARE] + [f"Basic {encoded}"]))
    return draw(st.sampled_from(MAILS)).format(draw(st.sampled_from(FORMS)).format(canary))


@st.composite
def planted(draw: DrawFn) -> tuple[Any, list[str]]:
    """A context, and the canaries in it."""
    canaries: list[str] = []

    def canary() -> str:
        canaries.append(f"CANARY{len(canaries):010}")
        return canaries[-1]

    def secret() -> Any:
        kind = draw(st.integers(0, 4))
        if kind == 0:
            canaries.append(str(70_000_000 + len(canaries)))
            return int(canaries[-1])
        if kind == 1:
            return [draw(json_values(1)), canary(), {"x": canary()}]
        return {canary(): {canary(): draw(json_values(1))}} if kind == 2 else canary()

    def node(depth: int) -> Any:
        kind = draw(st.integers(0, 5 if depth else 2))
        if kind == 0:
            return {draw(secret_names()): _single(secret())}
        if kind == 1:
            return draw(secrets_in_form(canary()))
        if kind == 2:
            return {draw(secrets_in_form(canary())): draw(json_values(1))}
        if kind == 3:
            return [node(depth - 1), draw(json_values(1)), node(depth - 1)]
        beside = draw(json_values(1))
        return {
            draw(json_texts()): node(depth - 1),
            "beside": beside,
            draw(st.sampled_from(NAMES["ordinary"])): node(0),
        }

    return {"facts": node(3), draw(json_texts()): draw(json_values(2))}, canaries


def _single(secret: Any) -> Any:
    # A number alone may be a count.
    return [secret] if isinstance(secret, int) else secret


@given(planted())
def test_no_planted_secret_is_in_what_the_upstream_gets(case: tuple[Any, list[str]]) -> None:
    context, canaries = case
    before = copy.deepcopy(context)
    for mode, options in (("single", {}), ("multi", {"options": ["a", "b"]})):
        body = {"mode": mode, "question": "May we?", "context": {**context, **options}}
        sent = read_question(read_request(body, "0" * 64), root="").text
        assert [canary for canary in canaries if canary in sent] == []
    assert same_json(context, before)


def _any_context() -> SearchStrategy[Any]:
    return st.one_of(planted().map(lambda case: case[0]), json_values(3))


@given(_any_context())
def test_masking_is_idempotent(context: Any) -> None:
    once = mask(context)
    assert canonical(mask(once)) == canonical(once)


@given(st.one_of(json_values(3), st.recursive(st.text() | st.integers() | st.floats(), st.lists)))
def test_masking_never_raises(value: Any) -> None:
    mask(value)
    mask([{str(value): value}])


# Sensitive by the name above them.
OF_ANOTHER: Final = ("key", "keys", "number", "codes")
_ORDINARY: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9999, 9999) | st.sampled_from(TEXTS["ordinary"]),
    lambda within: (
        st.lists(within, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES["ordinary"]).filter(lambda name: name not in OF_ANOTHER), within, max_size=3
        )
    ),
    max_leaves=12,
)


@given(_ORDINARY)
def test_what_is_not_sensitive_stays(context: Any) -> None:
    assert same_json(mask(context), context)


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "apiKey2", "customer's card number"])
def test_a_long_name_is_read_to_its_end(name: str) -> None:
    assert mask({f"{'is what they gave us ' * 9}{name}": "k-1"}) == {f"{'is what they gave us ' * 9}{name}": MASKED}
    assert mask({f"{name} {'is what they gave us ' * 9}": "k-1"}) == {f"{name} {'is what they gave us ' * 9}": "k-1"}


@given(st.text(max_size=200))
def test_any_text_is_a_name(name: str) -> None:
    assert is_sensitive_name(name) in (True, False)
    assert is_sensitive_text(name) in (True, False)
