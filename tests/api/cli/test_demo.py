"""gate demo: a new instance whose ledger is as the scenario says, whole, and the same for the same seed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from api.app import create_app
from api.cli.demo import command
from api.cli.demo.ledger import DemoPlan, Made, key_file, make_ledger, owner_key_file, scenario
from api.cli.demo.owners import Resolve
from api.cli.demo.scenario import Decide, Register
from api.cli.output import progress
from gate.clock import utc_now
from gate.decisions.decide import DecisionGate
from gate.errors import AdapterFailed
from gate.ids import timestamp
from gate.instance.instance import Instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger.access.authority import Authority
from gate.proof.signing import load_registry
from tests.support.command_line import run_gate
from tests.support.syscalls import descendants

pytestmark = pytest.mark.heavy

UNTIL: Final = datetime(2026, 11, 22, tzinfo=UTC)
PLAN: Final = DemoPlan(200, 7, UNTIL)
SCOPES: Final = ("harbor-supply", "lumen-retail", "orbit-software", "alder-travel")


def made_by_command(home: Path, *options: str) -> dict[str, Any]:
    done = run_gate("demo", "--decisions", "200", "--home", str(home), "--json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The home of a small demo, and what the command told of it."""
    home = tmp_path_factory.mktemp("demo") / "home"
    return home, made_by_command(home, "--seed", "7", "--until", "2026-11-22")


@pytest.fixture
def opened(demo: tuple[Path, dict[str, Any]]) -> Iterator[Instance]:
    with closing(open_instance(load_settings(demo[0]))) as instance:
        yield instance


def entries(instance: Instance, scope: str) -> list[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """The type, date, body and request of each entry of a scope's chain."""
    scope_id = instance.ledger.directory.scope(scope).scope_id
    size = instance.ledger.entries.head(scope_id).size
    found = []
    for position in range(1, size + 1):
        entry = instance.ledger.entries.at(scope_id, position)
        assert entry is not None
        link, request = entry.link, {} if entry.request is None else orjson.loads(entry.request)
        found.append((link["entry_type"], link["created_at"], orjson.loads(entry.body), request))
    return found


def test_the_command_tells_what_it_made_and_how_to_go_on(demo: tuple[Path, dict[str, Any]]) -> None:
    home, told = demo
    assert {name: told[name] for name in ("home", "seed", "clean", "peers", "from", "until", "serve")} == {
        "home": str(home),
        "seed": 7,
        "clean": False,
        "peers": 0,
        "from": "2025-11-22",
        "until": "2026-11-22",
        "serve": f"gate serve --port 8081 --home {home}",
    }
    assert json.loads((home / "demo.json").read_text()) == told
    assert [each["scope"] for each in told["scopes"]] == list(SCOPES)
    assert sum(each["decisions"] for each in told["scopes"]) == 200
    for each in told["scopes"]:
        for member, name in (("key_file", "key"), ("owner_key_file", "owner.key")):
            file = Path(each[member])
            assert file == home / f"{each['scope']}.{name}"
            assert file.stat().st_mode & 0o777 == 0o600


def test_its_chains_are_whole_and_its_instance_is_ready(demo: tuple[Path, dict[str, Any]]) -> None:
    home, told = demo
    checked = run_gate("chain", "check", "--home", str(home), "--json")
    assert checked.returncode == 0
    counts = {each["scope"]: each["entries_checked"] for each in json.loads(checked.stdout)["chains"]}
    names = ("decisions", "resolutions", "executions", "outcomes", "crm_syncs")
    assert counts == {each["scope"]: sum(each[name] for name in names) for each in told["scopes"]}
    assert run_gate("status", "--home", str(home)).returncode == 0
    assert run_gate("log", "--home", str(home)).returncode == 0


def test_its_ledger_is_the_scenario_event_by_event_with_each_ones_date(opened: Instance) -> None:
    for scope in SCOPES:
        events = list(scenario().events(scope, decisions=PLAN.decisions, seed=PLAN.seed, start=PLAN.start))
        stored = entries(opened, scope)
        asked = [event for event in events if not isinstance(event, Register)]
        assert [date for _, date, _, _ in stored] == [timestamp(event.moment) for event in asked]
        ids: dict[int, str] = {}
        for event, (kind, _, body, request) in zip(asked, stored, strict=True):
            if isinstance(event, Decide):
                ids[event.number] = body["decision_id"]
                assert (kind, body["verdict"], request) == ("decision", event.verdict, event.request)
                assert body["policy_version"] == event.rulebook.version
                assert ("trusted_adapter" in body) == ("adapter" in request)
                assert body["created_at"] == timestamp(event.moment)
            elif isinstance(event, Resolve):
                assert (kind, body["decision_id"]) == ("resolution", ids[event.number])
                assert (body["resolution"], body["recorded_at"]) == (event.resolution, timestamp(event.moment))
                assert event.body is None or event.body.items() <= body.items()
            else:
                assert (kind, body["decision_id"]) == (event.kind.entry_type, ids[event.number])
                assert body["reported_at"] == timestamp(event.moment)
                assert event.body.items() <= body.items()
        scope_id = opened.ledger.directory.scope(scope).scope_id
        for came in events:
            if isinstance(came, Register):
                registered = opened.ledger.rulebooks.find(scope_id, came.rulebook.hash)
                assert registered is not None
                assert registered.metadata["registered_at"] == timestamp(came.moment)
                assert registered.metadata.get("adapter_dependency") == came.dependency


def test_keys_and_scopes_are_as_old_as_the_first_day(demo: tuple[Path, dict[str, Any]], opened: Instance) -> None:
    home, _ = demo
    for name in SCOPES:
        assert opened.ledger.directory.scope(name).created_at == timestamp(PLAN.start)
        authority = opened.ledger.directory.authenticate(key_file(home, name).read_text().strip(), utc_now())
        assert authority.access == {"decide", "report", "read", "register"}
        owner = opened.ledger.directory.authenticate(owner_key_file(home, name).read_text().strip(), utc_now())
        assert owner.scope_id == authority.scope_id
        assert owner.access == {"resolve"}
    for purpose in ("receipt", "registry"):
        (key,) = load_registry(orjson.loads((home / "keys" / f"{purpose}.json").read_bytes())).keys
        assert key.not_before == timestamp(PLAN.start - timedelta(minutes=5))


def test_its_owners_are_set_from_the_first_day_on(opened: Instance) -> None:
    for name in SCOPES:
        scope_id = opened.ledger.directory.scope(name).scope_id
        found = {(each.rulebook_id, each.action): each for each in opened.ledger.review_owners.of(scope_id)}
        assert {key: each.terms for key, each in found.items()} == {
            (owner.policy_id, owner.action): owner.terms for owner in scenario().owners(name)
        }
        assert {each.set_at for each in found.values()} == {timestamp(PLAN.start)}


def test_its_reviews_stand_as_their_owners_answered_and_receipts_are_in_order_behind_grants(opened: Instance) -> None:
    states: Counter[str] = Counter()
    breaches: Counter[tuple[str, str]] = Counter()
    for name in SCOPES:
        scope_id = opened.ledger.directory.scope(name).scope_id
        answers: dict[str, dict[str, Any]] = {}
        executed: dict[str, bool] = {}
        for kind, _, body, _ in entries(opened, name):
            if kind == "decision" and body["verdict"] == "review":
                executed[body["decision_id"]] = False
            elif kind == "resolution":
                answers[body["decision_id"]] = body
            elif kind == "execution":
                answer = answers.get(body["decision_id"])
                granted = answer is not None and answer["resolution"] == "granted"
                in_order = body["decision_verdict"] == "yes" or granted
                assert body["flags"] == ([] if in_order else ["DECISION_NOT_APPROVED"])
                if not in_order:
                    breaches[name, "held" if answer is None else answer["resolution"]] += 1
                elif granted and body["execution_status"] == "executed":
                    executed[body["decision_id"]] = True
        for decision_id, done in executed.items():
            review = opened.ledger.reviews.find(scope_id, decision_id)
            assert review is not None
            expected = answers[decision_id]["resolution"] if decision_id in answers else "held"
            assert review.state == ("executed" if done else expected)
            states[review.state] += 1
        for answer in answers.values():
            by_service = answer["resolution"] == "expired"
            assert answer["actor"]["type"] == ("service" if by_service else "key")
            assert ("resolved_by" in answer) == (not by_service)
    assert states["executed"] > 0.35 * states.total()
    assert states["refused"] > 0.3 * states.total()
    assert states["expired"] > 0
    assert breaches.keys() == {("alder-travel", "held"), ("alder-travel", "refused")}
    assert breaches.total() <= 10


def test_the_packet_of_a_granted_booking_verifies_offline(
    demo: tuple[Path, dict[str, Any]], opened: Instance, tmp_path: Path
) -> None:
    home, _ = demo
    stored = entries(opened, "alder-travel")
    refunds = {body["decision_id"] for kind, _, body, _ in stored if kind == "decision" if "trusted_adapter" in body}
    granted = next(
        body["decision_id"]
        for kind, _, body, _ in stored
        if kind == "resolution" and body["resolution"] == "granted" and body["decision_id"] in refunds
    )
    headers = {"x-api-key": key_file(home, "alder-travel").read_text().strip()}
    path = f"/api/decision/{granted}/packet?include_intelligence=false"
    packet = create_app(opened).test_client().get(path, headers=headers).get_json()
    file = tmp_path / "packet.json"
    file.write_text(json.dumps(packet))
    told = run_gate("verify-packet", str(file), "--home", str(home), "--json")
    assert (told.returncode, json.loads(told.stdout)["verified"]) == (0, True)
    assert packet["resolution"]["resolution"] == "granted"
    packet["resolution"]["resolution"] = "refused"
    file.write_text(json.dumps(packet))
    assert run_gate("verify-packet", str(file), "--home", str(home), "--json").returncode == 1


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Made]]:
    """The home of the same demo with a peer besides, made by two processes, and what they made."""
    home = tmp_path_factory.mktemp("by-two") / "home"
    return home, make_ledger(home, replace(PLAN, peers=1), processes=2)


def test_the_same_seed_makes_the_same_ledger_in_one_process_and_in_two_and_whatever_peers_there_are(
    by_two: tuple[Path, list[Made]], opened: Instance
) -> None:
    home, made = by_two
    assert [each.scope for each in made[: len(SCOPES)]] == list(SCOPES)
    with closing(open_instance(load_settings(home))) as other:
        for scope in SCOPES:
            assert list(map(constant, entries(other, scope))) == list(map(constant, entries(opened, scope)))


def constant(entry: tuple[str, str, dict[str, Any], dict[str, Any]]) -> Any:
    """What of an entry is no id, hash or signature."""
    kind, date, body, request = entry
    varying = ("_id", "_hash", "signature", "_url")
    told = {
        name: value
        for name, value in body.items()
        if isinstance(value, str) and not any(name.endswith(end) for end in varying) and name not in _OF_INSTANCE
    }
    return kind, date, told, request


_OF_INSTANCE: Final = frozenset({"fingerprint", "receipt_public_key_fingerprint"})


def test_a_clean_ledger_has_no_incident(tmp_path: Path) -> None:
    told = made_by_command(tmp_path / "clean", "--clean", "--until", "2026-11-22")
    assert told["clean"] is True
    with closing(open_instance(load_settings(tmp_path / "clean"))) as instance:
        stored = entries(instance, "harbor-supply")
        versions = {body["policy_version"] for kind, _, body, _ in stored if kind == "decision"}
        requests = [request for _, _, _, request in entries(instance, "lumen-retail") if request]
    assert "2026-06-11" in versions
    assert "2026-07-20" not in versions
    # Usual customers have numbers below 40,000.
    assert (
        max(
            int(request["context"]["subject"].removeprefix("customer-"))
            for request in requests
            if request["context"]["workflow"] == "refunds"
        )
        < 40_000
    )


def test_peers_are_scopes_besides_with_keys_and_decisions_of_their_own(
    by_two: tuple[Path, list[Made]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, of_both = by_two
    plans = []

    def as_made(where: Path, plan: DemoPlan, told: object) -> list[Made]:
        where.mkdir()
        plans.append(plan)
        return of_both

    monkeypatch.setattr(command, "make_ledger", as_made)
    made = made_by_command(tmp_path / "peers", "--seed", "7", "--until", "2026-11-22", "--peers", "1")
    assert plans == [replace(PLAN, peers=1)]
    (peer,) = scenario().peers[:1]
    assert made["peers"] == 1
    assert {each["scope"]: each["decisions"] for each in made["scopes"][len(SCOPES) :]} == {peer: 340}
    assert [each["scope"] for each in made["scopes"][: len(SCOPES)]] == list(SCOPES)
    with closing(open_instance(load_settings(home))) as instance:
        assert instance.ledger.directory.scope(peer).created_at == timestamp(PLAN.start)
        key = key_file(home, peer).read_text().strip()
        assert instance.ledger.directory.authenticate(key, utc_now()).scope_id == (
            instance.ledger.directory.scope(peer).scope_id
        )
        stored = entries(instance, peer)
    events = scenario().events(peer, decisions=200, seed=7, start=UNTIL - timedelta(days=365))
    asked = [event for event in events if not isinstance(event, Register)]
    assert [date for _, date, _, _ in stored] == [timestamp(event.moment) for event in asked]


def test_a_busy_machine_on_which_adapters_take_too_long_gets_the_same_ledger(
    tmp_path: Path, opened: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide, too_long = DecisionGate.decide, AdapterFailed("TRUSTED_ADAPTER_EXECUTION_TIMEOUT", "It took too long.")
    late: Counter[str] = Counter()

    def busy(gate: DecisionGate, caller: Authority, request: Any, *, request_id: str) -> Any:
        if "adapter" in request and late[request_id] < 3:
            late[request_id] += 1
            raise too_long
        return decide(gate, caller, request, request_id=request_id)

    monkeypatch.setattr(DecisionGate, "decide", busy)
    make_ledger(tmp_path / "home", PLAN, processes=1)
    assert len(late) > 3
    with closing(open_instance(load_settings(tmp_path / "home"))) as other:
        assert list(map(constant, entries(other, SCOPES[-1]))) == list(map(constant, entries(opened, SCOPES[-1])))


def test_a_person_hears_where_the_keys_are_and_what_comes_next(tmp_path: Path) -> None:
    home = tmp_path / "a demo"
    done = run_gate("demo", "--decisions", "100", "--home", str(home))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Made 100 decisions, with ")
    for scope in SCOPES:
        assert str(home / f"{scope}.key") in done.stdout
    assert "chance may hide them" in done.stdout
    assert done.stdout.endswith(f"Serve it: gate serve --port 8081 --home '{home}'\n")


def test_what_is_to_be_pasted_names_the_command_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin of it" / "gate"
    program.parent.mkdir()
    program.touch(mode=0o700)
    # What is made is not looked at.
    monkeypatch.setattr(command, "make_ledger", lambda home, *_: home.mkdir() or [])
    for path, called in (("", f"'{program}'"), (str(program.parent), "gate")):
        monkeypatch.setenv("PATH", path)
        monkeypatch.setattr(sys, "argv", [str(program)])
        home = tmp_path / ("on the path" if path else "off it")
        command.demo(decisions=100, home=home)
        assert json.loads((home / "demo.json").read_text())["serve"].startswith(f"{called} serve ")


@pytest.mark.parametrize("name", ["settings.toml", "keys", "ledger.db"])
def test_a_directory_with_an_instance_or_a_part_of_one_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    done = run_gate("demo", "--decisions", "100", "--home", str(tmp_path), "--json")
    assert (done.returncode, done.stdout) == (2, "")
    error = json.loads(done.stderr)
    assert error["error"] == "INSTANCE_EXISTS"
    assert str(tmp_path) in error["message"]
    assert "--home" in error["message"]
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert list((tmp_path / name).iterdir()) == []


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run_gate("demo", "--decisions", "100", "--home", str(tmp_path / "file" / "home"))
    assert done.returncode == 2
    assert done.stderr.endswith("(INSTANCE_UNWRITABLE)\n")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--until", "2026-02-30"], "DATE_INVALID"),
        (["--until", "yesterday"], "DATE_INVALID"),
        (["--until", "9999-12-31"], "DATE_INVALID"),
        (["--until", "1971-12-31"], "DATE_INVALID"),
        (["--decisions", "99"], "USAGE_INVALID"),
        (["--decisions", "1000001"], "USAGE_INVALID"),
        (["--seed", "-1"], "USAGE_INVALID"),
        (["--peers", "-1"], "USAGE_INVALID"),
        (["--peers", "51"], "USAGE_INVALID"),
    ],
)
def test_what_no_year_can_be_made_of_is_refused(tmp_path: Path, options: list[str], code: str) -> None:
    done = run_gate("demo", *options, "--home", str(tmp_path / "home"))
    assert done.returncode == 2
    assert done.stderr.endswith(f"({code})\n")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_the_environment_names_gets_no_demo_and_progress_is_told_up_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    monkeypatch.setenv("GATE_DATABASE_URL", f"sqlite:///{elsewhere}")
    told: list[int] = []
    made = make_ledger(tmp_path / "home", DemoPlan(100, 1, UNTIL), told.append)
    assert not elsewhere.exists()
    assert (tmp_path / "home" / "ledger.db").stat().st_size > 100_000
    assert told == sorted(told)
    assert (len(told) > 4, told[-1]) == (True, 100)
    assert sum(each.entries["decision"] for each in made) == 100


class Interrupted(Exception):
    """Stands for Ctrl-C, which a test cannot press."""


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_demo_ends_at_once(tmp_path: Path, processes: int) -> None:
    def told(decisions: int) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        make_ledger(tmp_path, DemoPlan(20_000, 1, UNTIL), told, processes=processes)
    assert run_gate("chain", "check", "--home", str(tmp_path)).returncode == 0


def runs(pid: int) -> bool:
    """Whether a process is there, and not only what it leaves for its parent to see."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_demo_that_is_killed_leaves_nobody_at_work(tmp_path: Path) -> None:
    home = tmp_path / "home"
    started_as = [sys.executable, "-c", "from api.cli.main import main; main()", "demo", "--home", str(home)]
    with subprocess.Popen(started_as, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while len(list(home.glob("*.key"))) < len(SCOPES) or len(started := descendants(process.pid)) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
    while any(map(runs, started)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (home / "demo.json").exists()


class Terminal(io.StringIO):
    """A stream that a person watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("as_json", [False, True])
def test_a_bar_is_for_persons_and_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("Decisions \x1b[2K [red]", 40, as_json=as_json) as told:
        told(10)
        told(40)
    assert capsys.readouterr().out == ""
    shown = terminal.getvalue()
    assert ("40/40" in shown) == ("Decisions \\x1b[2K [red]" in shown) == (not as_json)


@pytest.mark.parametrize(("as_json", "asked", "lines"), [(False, True, 1), (True, True, 0), (False, False, 0)])
def test_progress_that_is_asked_for_is_lines_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], as_json: bool, asked: bool, lines: int
) -> None:
    with progress("Entries", 4_000, as_json=as_json, asked=asked) as told:
        told(1_000)
        told(4_000)
    assert capsys.readouterr() == ("", "Entries: 4,000 of 4,000\n" * lines)


def test_a_person_who_watches_can_do_without_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("Entries", 40, asked=False) as told:
        told(40)
    assert terminal.getvalue() == ""


def test_no_bar_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Decisions", 40) as told:
        told(40)
    assert capsys.readouterr() == ("", "")
