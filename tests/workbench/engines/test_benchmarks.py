"""What is frozen of a month, and the reports over it, equal a recount in plain Python; whatever is lost is made again
the same, and what is reported later changes nothing of it.
"""

from __future__ import annotations

import itertools
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl
import pytest

from gate.encoding.canonical import canonical
from gate.errors import OperatorError, ServiceUnavailable
from gate.ids import timestamp
from gate.instance.instance import Instance, create_instance, open_instance
from gate.instance.settings import load_settings
from gate.ledger import Ledger
from gate.ledger.access.authority import Scope
from gate.policy.peers import MonthCounts, beginning, earlier
from gate.policy.questions import BenchmarksQuestion
from gate.records.reports.receipts import OUTCOMES
from tests.independent import benchmarks as recount
from tests.support.samples import sample_request
from tests.support.torture import size
from tests.workbench.benchmarking import POLICY, chain_of
from tests.workbench.growing import SINCE, Lake, Site, rulebook
from workbench import benchmarks
from workbench.analytics import Follower
from workbench.columns import BENCHMARKS
from workbench.engines.benchmarks import BenchmarkReport, answer
from workbench.lake import cohorts as frozen
from workbench.lake import fresh as freshness
from workbench.lake.cohorts import cases_at, freeze, frozen_rows, is_frozen, keep_frozen, latest, month_due
from workbench.lake.entries import Personal
from workbench.lake.fresh import fresh
from workbench.lake.lease import lease
from workbench.lake.manifest import write_durably
from workbench.lake.reader import Snapshot, open_lake

SCOPES: Final = [f"scope-{number}" for number in range(8)]
POLICIES: Final = ("refunds", "refunds.fast")
FIRST: Final = datetime(2025, 12, 1, tzinfo=UTC)
MONTHS: Final = ("2026-01", "2026-02", "2026-03", "2026-04")
AN_HOUR: Final = timedelta(hours=1)
STATUSES: Final = ["succeeded"] * 8 + ["partial", "failed", "failed", "reverted", "pending", "review"]


class Cohort(Site):
    """Scopes that decide by the same policies, most of them in December, and hear of it until March; and that are opted
    in and out meanwhile.
    """

    def __init__(self, instance: Instance, chance: random.Random) -> None:
        super().__init__(instance, SCOPES, chance)
        self.choices: list[tuple[str, bool, str]] = []

    def live(self, decisions: int) -> None:
        """Decides and reports, in random order of dates; many decide before the first report."""
        for number, name in enumerate(self.scopes):
            # The first with hardly an outcome, the others with several for many decisions.
            reports = decisions * 3 // 2 if number else decisions // 4
            turns = [self._decide] * (decisions // 3) + [self._report] * reports
            self.chance.shuffle(turns)
            for turn in [self._decide] * (decisions - decisions // 3) + turns:
                turn(name)

    def _decide(self, name: str) -> None:
        self.now = self._moment_in(0, 35, 31)
        facts = {"discount_percent": 10, "margin_percent": self.chance.choice([22, 22, 22, 3])}
        request = sample_request(**facts)
        policy_id = self.chance.choices(POLICIES, [12, 1])[0]
        request["rulebook"] = rulebook(policy_id, self.chance.choice(["1", "2"]))
        record = self.gate.decide(self.callers[name], request, request_id="req_1").record
        self.entries[name].append(record)
        self.decided[name].append(record["decision_id"])

    def _report(self, name: str) -> None:
        if self.decided[name]:
            self.now = self._moment_in(0, 80, 62)
            self.tell(name, self.chance.choice(self.decided[name]), self.chance.choice(STATUSES))

    def tell(self, name: str, decision_id: str, status: str) -> None:
        """Reports an outcome."""
        told = self.lifecycle.report(self.callers[name], OUTCOMES, decision_id, {"outcome_status": status})
        self.entries[name].append(told.report)

    def _moment_in(self, first: int, last: int, edge: int) -> datetime:
        """A moment between two days, often the first or last of the day that begins a month."""
        day = FIRST + timedelta(days=edge if self.chance.random() < 0.15 else self.chance.randrange(first, last))
        return day + self.chance.choice([timedelta(0), timedelta(milliseconds=-1), timedelta(hours=7)])

    def choose(self) -> None:
        """Opts scopes in and out, several times and at the edges of months; the last of them never is."""
        for name in SCOPES[:-1]:
            moments = [FIRST - timedelta(days=20), *(beginning(month) for month in MONTHS)]
            moments = sorted(moment + self.chance.choice([-1, 0, 1]) * timedelta(milliseconds=1) for moment in moments)
            for number, moment in enumerate(moments):
                opted_in = number == 0 or self.chance.random() < 0.9
                if self.instance.ledger.benchmarks.choose(self.scopes[name], moment, opted_in=opted_in):
                    self.choices.append((name, opted_in, timestamp(moment)))

    def rows(self, lake: Path, month: str) -> dict[str, dict[str, recount.Coded]]:
        """What is to be frozen of a month, as the recount tells it."""
        return coded_rows(frozen_rows(self.instance.ledger, lake, Personal(), month), self)


def coded_rows(rows: pl.DataFrame, site: Site) -> dict[str, dict[str, recount.Coded]]:
    """By scope and policy, what is told of it."""
    names = {scope.scope_id: name for name, scope in site.scopes.items()}
    found: dict[str, dict[str, recount.Coded]] = {}
    for scope_id, policy_id, *coded in rows.select(list(BENCHMARKS)).rows():
        of = found.setdefault(names[scope_id], {})
        if policy_id is not None:
            of[policy_id] = (coded[0], coded[1], coded[2], coded[3])
    return found


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    home = tmp_path_factory.mktemp("benchmarks") / "home"
    create_instance(home, base_url="http://gate.example", now=SINCE)
    instance = open_instance(load_settings(home))
    site = Cohort(instance, random.Random(12))  # noqa: S311 - for tests to be the same each time
    site.choose()
    site.live(84)
    yield site
    instance.close()


@pytest.fixture(scope="module")
def exported(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake that holds all of it, exported in several steps."""
    lake = Lake(cohort, tmp_path_factory.mktemp("exported"), batch=90)
    lake.export()
    return lake


def begun(month: str) -> datetime:
    return beginning(month) + AN_HOUR


class TestFreeze:
    @pytest.mark.heavy
    def test_it_equals_the_recount_however_much_the_lake_holds(
        self, cohort: Cohort, exported: Lake, tmp_path: Path
    ) -> None:
        (tmp_path / "partly").mkdir()
        partly = Lake(cohort, tmp_path / "partly", batch=40)
        partly.export(commits=2)
        empty = tmp_path / "empty"
        shutil.copytree(exported.directory, tmp_path / "compacted")
        compacted = Lake(cohort, tmp_path / "compacted", batch=90)
        compacted.compact()
        counted = 0
        for number, month in enumerate(MONTHS):
            expected = recount.frozen(cohort.entries, cohort.choices, month)
            counted += sum(len(policies) for policies in expected.values())
            directories = (empty, partly.directory, exported.directory, compacted.directory)
            # Two of them each month, so each in two.
            for directory in size(directories[number % 2 :: 2], directories):
                assert cohort.rows(directory, month) == expected
        # Of some nothing is told, and of others it is.
        assert 6 <= counted < len(SCOPES) * len(POLICIES)

    @pytest.mark.heavy
    def test_members_are_those_who_were_opted_in_when_the_month_began(self, cohort: Cohort) -> None:
        asked = {month: cohort.instance.ledger.benchmarks.members(beginning(month)) for month in MONTHS}
        for month, members in asked.items():
            expected = recount.members(cohort.choices, month)
            assert sorted(cohort.scopes[name].scope_id for name in expected) == members
        assert len({tuple(members) for members in asked.values()}) > 1

    @pytest.mark.heavy
    def test_a_file_that_is_lost_or_half_written_is_made_again_the_same(
        self, cohort: Cohort, exported: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake = Path(shutil.copytree(exported.directory, tmp_path / "lake"))
        file = lake / "benchmarks" / "2026-02.parquet"

        def made() -> bytes:
            assert keep_frozen(cohort.instance.ledger, lake, Personal(), begun("2026-02")) == "2026-02"
            return file.read_bytes()

        first = made()
        assert keep_frozen(cohort.instance.ledger, lake, Personal(), begun("2026-02")) is None
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        file.unlink()

        class Killed(BaseException):
            pass

        def die(place: Path, content: bytes) -> None:
            write_durably(place.with_name(f".{place.name}.half"), content[: len(content) // 2])
            raise Killed

        with monkeypatch.context() as dying:
            dying.setattr(frozen, "write_durably", die)
            with pytest.raises(Killed):
                made()
        assert latest(lake) is None
        assert made() == first
        Lake(cohort, lake, batch=23).compact()
        file.unlink()
        assert made() == first

    def test_what_is_reported_later_changes_nothing_of_it(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        create_instance(home, base_url="http://gate.example", now=SINCE)
        instance = open_instance(load_settings(home))
        site = Cohort(instance, random.Random(5))  # noqa: S311 - for tests to be the same each time
        name = SCOPES[0]
        instance.ledger.benchmarks.choose(site.scopes[name], FIRST - AN_HOUR, opted_in=True)
        for _ in range(50):
            site._decide(name)
        site.now = FIRST + timedelta(days=50)
        december = [record["decision_id"] for record in site.entries[name] if record["created_at"][:7] == "2025-12"]
        for decision_id in december:
            site.tell(name, decision_id, "succeeded")

        def told() -> bytes:
            rows = frozen_rows(instance.ledger, tmp_path, Personal(), "2026-02")
            return repr(rows.rows()).encode()

        before = told()
        assert b"refunds" not in before or b"0.95" in before
        site.now = beginning("2026-02")
        for decision_id in december:
            site.tell(name, decision_id, "failed")
        assert told() == before
        snapshot = fresh(instance.ledger, tmp_path, site.scopes[name].scope_id, Personal())
        known = cases_at(snapshot, "2026-02").collect()["outcome_status"].drop_nulls().unique().to_list()
        assert known == ["succeeded"]
        # One millisecond earlier it counts, and the last in chain order counts.
        site.now = beginning("2026-02") - timedelta(milliseconds=1)
        site.tell(name, december[0], "reverted")
        snapshot = fresh(instance.ledger, tmp_path, site.scopes[name].scope_id, Personal())
        known = cases_at(snapshot, "2026-02").collect()["outcome_status"].drop_nulls().unique().sort().to_list()
        assert known == ["succeeded", "reverted"]
        instance.close()

    def test_no_decision_is_in_two_months(self, cohort: Cohort) -> None:
        snapshot = fresh(cohort.instance.ledger, Path("nowhere"), cohort.scopes[SCOPES[3]].scope_id, Personal())
        seen: list[int] = []
        for month in ("2026-01", *MONTHS[1:], "2026-05"):
            seen += cases_at(snapshot, month).collect()["position"].to_list()
        assert len(seen) == len(set(seen)) == 84

    def test_its_rows_are_in_order_whatever_order_the_members_come_in(self, tmp_path: Path) -> None:
        members = [chain_of(name, {"2026-02": MonthCounts(100, 60, 80, 60)}, tmp_path) for name in ("b", "c", "a")]
        rows = freeze(members, "2026-04")
        assert rows.select("scope_id", "policy_id").rows() == [(of, name) for of in "abc" for name in (None, POLICY)]

    def test_a_month_is_due_an_hour_after_it_has_begun(self) -> None:
        assert month_due(beginning("2026-02") + AN_HOUR) == "2026-02"
        assert month_due(beginning("2026-02") + AN_HOUR - timedelta(milliseconds=1)) == "2026-01"

    @pytest.mark.heavy
    def test_months_stay_for_two_years(self, ledger: Ledger, scope: Scope, tmp_path: Path) -> None:
        ledger.benchmarks.choose(scope, FIRST - AN_HOUR, opted_in=True)
        for months in range(26):
            month = earlier("2028-01", 25 - months)
            assert keep_frozen(ledger, tmp_path, Personal(), begun(month)) == month
        kept = sorted(file.stem for file in (tmp_path / "benchmarks").iterdir())
        assert kept == [earlier("2028-01", months) for months in reversed(range(24))]
        found = latest(tmp_path)
        assert found is not None
        assert found.month == "2028-01"
        assert found.has_member(scope.scope_id)

    def test_a_scope_that_the_lake_lacks_too_much_of_postpones_it_for_all(
        self, cohort: Cohort, exported: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(freshness, "MAX_TAIL", 10)
        with pytest.raises(ServiceUnavailable) as caught:
            keep_frozen(cohort.instance.ledger, tmp_path, Personal(), begun("2026-02"))
        assert caught.value.code == "SVC_REPORT_UNAVAILABLE"
        # Whoever reads the log learns which one, and of what.
        members = cohort.instance.ledger.benchmarks.members(beginning("2026-02"))
        assert (
            f"The benchmarks of 2026-02 cannot be frozen until the scope {members[0]} can be read"
            in caught.value.message
        )
        assert not list(tmp_path.rglob("*.parquet"))
        shutil.copytree(exported.directory, tmp_path, dirs_exist_ok=True)
        assert keep_frozen(cohort.instance.ledger, tmp_path, Personal(), begun("2026-02")) == "2026-02"

    def test_a_lake_that_cannot_be_written_says_so(self, cohort: Cohort, tmp_path: Path) -> None:
        (tmp_path / "benchmarks").write_bytes(b"in the way")
        with pytest.raises(OperatorError) as caught:
            keep_frozen(cohort.instance.ledger, tmp_path, Personal(), begun("2026-02"))
        assert caught.value.code == "LAKE_UNWRITABLE"


class TestFollower:
    def test_it_freezes_a_month_once_it_is_due_and_all_chains_are_here(self, cohort: Cohort, tmp_path: Path) -> None:
        now = [begun("2026-02") - timedelta(seconds=1)]
        follower = Follower(cohort.instance.ledger, tmp_path, Personal(), clock=lambda: now[0])
        for moment, month in ((now[0], "2026-01"), (begun("2026-02"), "2026-02"), (begun("2026-03"), "2026-03")):
            now[0] = moment
            assert follower.follow() == []
            assert is_frozen(tmp_path, month)
            found = latest(tmp_path)
            assert found is not None
            assert found.month == month
            assert coded_rows(found.rows, cohort) == recount.frozen(cohort.entries, cohort.choices, month)

    def test_what_keeps_it_from_freezing_is_told_and_the_chains_are_exported_all_the_same(
        self, cohort: Cohort, tmp_path: Path
    ) -> None:
        (tmp_path / "benchmarks").write_bytes(b"in the way")
        follower = Follower(cohort.instance.ledger, tmp_path, Personal(), clock=lambda: begun("2026-02"))
        (error,) = follower.follow()
        assert isinstance(error, OperatorError)
        assert error.code == "LAKE_UNWRITABLE"
        assert open_lake(tmp_path).scopes == SCOPES

    def test_while_another_process_writes_into_the_lake_it_freezes_nothing_and_fails_at_nothing(
        self, cohort: Cohort, tmp_path: Path
    ) -> None:
        follower = Follower(cohort.instance.ledger, tmp_path, Personal(), clock=lambda: begun("2026-02"))
        with lease(tmp_path, patience=0):
            assert follower.follow() == []
            assert not is_frozen(tmp_path, "2026-02")
        assert follower.follow() == []
        assert is_frozen(tmp_path, "2026-02")


class TestReport:
    @pytest.mark.heavy
    def test_it_equals_the_recount_for_every_scope_policy_and_parameter(
        self, cohort: Cohort, exported: Lake, tmp_path: Path
    ) -> None:
        lake = Path(shutil.copytree(exported.directory, tmp_path / "lake"))
        reasons, parameters = set(), itertools.cycle(PARAMETERS)
        for month in MONTHS[1:3]:
            keep_frozen(cohort.instance.ledger, lake, Personal(), begun(month))
            opened = open_lake(lake)
            rows = recount.frozen(cohort.entries, cohort.choices, month)
            snapshots = {
                name: fresh(cohort.instance.ledger, lake, cohort.scopes[name].scope_id, Personal(), facts=False)
                for name in SCOPES
            }
            for name, policy_id in itertools.product(SCOPES, (*POLICIES, "unheard.of")):
                chosen = next(parameters)
                question = BenchmarksQuestion(policy_id, **chosen)
                body = answer(snapshots[name], question).to_dict()
                expected = recount.benchmarks(
                    cohort.entries, cohort.choices, month, name, policy_id, rows=rows, **chosen
                )
                assert body == expected
                assert canonical(body) == canonical(expected)
                # The lake's own reader gives the same: of each scope and policy at least once.
                if size(month == MONTHS[1], True):
                    read = answer(opened.scope(name), question).to_dict()
                    assert orjson.dumps(read) == orjson.dumps(body)
                reasons.add(body["cross_customer"]["reason"])
        assert reasons == {None, "not_opted_in", "too_few_scopes", "too_few_decisions"}

    def test_without_a_freeze_ones_own_metrics_are_of_the_month_that_would_be_frozen(self, tmp_path: Path) -> None:
        months = {"2026-02": MonthCounts(30, 20, 25, 10), "2026-03": MonthCounts(40, 20, 0, 0)}
        # The last entry is of March; outcomes of February were reported in March, and those of March are to come.
        body = benchmarks(chain_of("s1", months, tmp_path), POLICY).to_dict()
        across = body["cross_customer"]
        assert (across["reason"], across["month"], across["from"]) == ("not_frozen", None, "2026-01-01T00:00:00.000Z")
        assert body["your_metrics"]["decisions"] == 0
        months |= {"2026-03": MonthCounts(40, 20, 1, 1)}
        body = benchmarks(chain_of("s1", months, tmp_path), POLICY).to_dict()
        assert body["cross_customer"]["from"] == "2026-02-01T00:00:00.000Z"
        assert (body["your_metrics"]["decisions"], body["your_metrics"]["terminal"]) == (30, 25)
        present = body["your_metrics"]["present"]
        assert (present["decisions"], present["terminal"], present["success_rate"]) == (70, 26, round(11 / 26, 6))

    def test_of_an_empty_chain_nothing_is_told(self, tmp_path: Path) -> None:
        body = benchmarks(chain_of("s1", {}, tmp_path), POLICY).to_dict()
        assert body["cross_customer"]["from"] is body["cross_customer"]["to"] is None
        assert (body["cross_customer"]["reason"], body["recommendation"]) == ("not_frozen", "not_compared")
        nothing = dict.fromkeys(("success_rate", "approval_rate", "terminal_coverage")) | {
            "decisions": 0,
            "terminal": 0,
        }
        assert body["your_metrics"] == {**nothing, "present": nothing}

    def test_a_frozen_month_that_was_changed_or_cut_short_is_refused_with_its_place(self, tmp_path: Path) -> None:
        snapshot = site_of(6, tmp_path)
        file = tmp_path / "benchmarks" / "2026-04.parquet"
        whole = file.read_bytes()
        rows = pl.read_parquet(file)
        for content in (b"", b"PAR1", whole[: len(whole) // 2], b"x" * len(whole)):
            file.write_bytes(content)
            assert "benchmarks/2026-04.parquet" in refused(snapshot)
        frozen.write(tmp_path, "2026-04", rows.rename({"decisions": "number"}))
        assert "gate lake export" in refused(snapshot)
        rows.with_columns(pl.col("success_rate") + 0.01).write_parquet(file)
        assert "benchmarks/2026-04.parquet" in refused(snapshot)
        file.write_bytes(whole)
        assert benchmarks(snapshot, POLICY).to_dict()["cross_customer"]["status"] == "available"

    def test_a_flipped_bit_anywhere_in_a_frozen_month_is_refused_before_it_is_read(self, tmp_path: Path) -> None:
        """Read as it stands, it may be another rate, or end the process that answers everybody's reports."""
        # A policy can be named like what stands in the file's own place for its hash.
        named = f"sha256:{'0' * 64}"
        february = {"2026-02": MonthCounts(100, 60, 80, 60)}
        members = [chain_of(f"s{number}", february, tmp_path, named) for number in range(6)]
        frozen.write(tmp_path, "2026-04", freeze(members, "2026-04"))
        file = tmp_path / "benchmarks" / "2026-04.parquet"
        whole = file.read_bytes()
        assert benchmarks(members[0], named).to_dict()["cross_customer"]["status"] == "available"
        for place in range(len(whole)):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
            with pytest.raises(OperatorError) as caught:
                latest(tmp_path)
            assert caught.value.code == "LAKE_BENCHMARKS_INVALID"
            if place % 100 == 0:
                # What every report reads.
                refused(members[0])

    def test_other_files_in_the_folder_are_passed_over(self, tmp_path: Path) -> None:
        snapshot = site_of(6, tmp_path)
        before = benchmarks(snapshot, POLICY).to_dict()
        for name in ("2026-13.parquet", "notes.txt", ".2026-09.parquet.tmp", "2026-9.parquet", "x.parquet"):
            (tmp_path / "benchmarks" / name).write_bytes(b"?")
        assert benchmarks(snapshot, POLICY).to_dict() == before


PARAMETERS: Final[Sequence[dict[str, Any]]] = [
    {},
    {"policy_version": "1"},
    {"policy_version": "unheard of"},
    {"limit": 1},
    {"limit": 20, "policy_version": "2"},
    {"limit": 1_000_000},
    {"min_cohort_scopes": 6},
    {"min_cohort_scopes": 1000, "min_cohort_decisions": 1_000_000},
    {"min_cohort_decisions": 201},
    {"min_cohort_decisions": 500, "limit": 3},
]


def site_of(others: int, lake: Path) -> Snapshot:
    """A scope and so many others in the freeze of April 2026, of decisions of February."""
    february = {"2026-02": MonthCounts(100, 60, 80, 60)}
    members = [chain_of(f"s{number}", february, lake) for number in range(others + 1)]
    frozen.write(lake, "2026-04", freeze(members, "2026-04"))
    return members[0]


def refused(snapshot: Snapshot) -> str:
    with pytest.raises(OperatorError) as caught:
        benchmarks(snapshot, POLICY)
    assert caught.value.code == "LAKE_BENCHMARKS_INVALID"
    return caught.value.message


class TestShown:
    def shown(self, report: BenchmarkReport) -> tuple[str, str, dict[str, Any]]:
        drawn: dict[str, Any] = report.plot().to_dict()
        return repr(report), report._repr_html_(), drawn

    def test_a_comparison_shows_ones_own_rates_beside_those_of_others(self, tmp_path: Path) -> None:
        report = benchmarks(site_of(6, tmp_path), POLICY)
        prompt, html, drawn = self.shown(report)
        assert prompt.splitlines() == [
            "Benchmarks of refunds in s0",
            "  success rate 75.0% of 80 terminal outcomes, 100 decisions made in February 2026",
            "  at least 5 other scopes: p25 75.0%, p50 75.0%, p75 75.0%; within_cohort",
        ]
        assert re.findall("<h3>.*?</h3>", html) == ["<h3>Benchmarks of refunds</h3>"]
        assert "Within cohort" in html
        assert "10th percentile" not in html
        assert report.frame.columns == ["metric", "yours", "p10", "p25", "p50", "p75", "p90", "delta"]
        (rows,) = drawn["datasets"].values()
        assert [(row["metric"], row["yours"], row["p50"]) for row in rows] == [
            ("Success rate", 0.75, 0.75),
            ("Approval rate", 0.6, 0.6),
            ("Terminal coverage", 0.8, 0.8),
        ]
        subtitle = " ".join(drawn["title"]["subtitle"])
        assert "at least 5 other scopes" in subtitle
        assert "10th" not in subtitle
        assert {layer["mark"]["type"] for layer in drawn["layer"]} == {"rule", "bar", "tick", "point"}

    def test_of_twenty_others_the_outer_percentiles_are_drawn(self, tmp_path: Path) -> None:
        prompt, html, drawn = self.shown(benchmarks(site_of(20, tmp_path), POLICY))
        assert "at least 20 other scopes" in prompt
        assert "10th percentile" in html
        assert "thin lines from the 10th to the 90th" in " ".join(drawn["title"]["subtitle"])

    @pytest.mark.parametrize("others", [0, 4])
    def test_where_nothing_is_told_of_others_everything_says_why(self, others: int, tmp_path: Path) -> None:
        report = benchmarks(site_of(others, tmp_path), POLICY, policy_version="1")
        prompt, html, drawn = self.shown(report)
        explanation = report.body["cross_customer"]["explanation"]
        assert f"not compared, too_few_scopes: {explanation}" in prompt
        assert explanation in html
        assert explanation in " ".join(drawn["title"]["subtitle"])
        assert all(len(line) < 100 for line in drawn["title"]["subtitle"])
        assert "version 1" in prompt + html

    def test_an_empty_chain_and_a_hostile_name_are_shown_as_they_are(self, tmp_path: Path) -> None:
        hostile = "<script>alert(1)</script>\n" * 9
        for prompt, html, drawn in (
            self.shown(benchmarks(chain_of("s1", {}, tmp_path), hostile)),
            self.shown(benchmarks(site_of(6, tmp_path), hostile, policy_version=hostile)),
        ):
            assert len(prompt.splitlines()) == 3
            assert "<script>" not in html
            assert drawn["layer"]
