"""Reading a migration: the files that a manifest names, and nothing outside of its folder."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gate.encoding.canonical import content_hash
from gate.encoding.yaml_text import write_yaml
from gate.errors import GateError, MaterialRefused, OperatorError
from gate.migration import folder as reading
from gate.migration.folder import MAX_CORPUS_FILE, MAX_MANIFEST, MAX_RULEBOOK_FILE, read_corpus_at, read_migration
from gate.rulebooks.rulebook import load
from tests.support.corpora import DEALS, LABEL, deals, indexed, manifest, refactored, write
from tests.support.samples import sample_rulebook

_watching: list[str] | None = None


def _heard(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _watching is not None and isinstance(arguments[0], str | bytes | os.PathLike):
        _watching.append(os.fsdecode(arguments[0]))


sys.addaudithook(_heard)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of everything that is opened: as they are named, and, where they are named in an open folder, as they
    are.
    """
    global _watching
    real, found = os.open, []

    def watched(*arguments: Any, **named: Any) -> int:
        descriptor = real(*arguments, **named)
        found.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    _watching = found
    yield found
    _watching = None


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside that of the manifest, with files that would be usable."""
    return write(tmp_path / "outside", {"pricing.json": refactored(), **deals()})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a manifest, which names a rulebook and a corpus below it."""
    named = manifest(
        candidate={"rulebooks": [{"rulebook_id": "pricing_exception", "path": "rulebooks/pricing.json"}]},
        corpus="corpus/index.json",
    )
    corpus = {f"corpus/{name}": document for name, document in deals().items()}
    return write(tmp_path / "migrations", {"m.json": named, "rulebooks/pricing.json": refactored(), **corpus})


def refused(home: Path) -> list[tuple[str, str, str]]:
    """The faults of the migration, which is refused."""
    with pytest.raises(MaterialRefused) as error:
        read_migration(home / "m.json")
    assert error.value.code in ("MIGRATION_INVALID", "CORPUS_INVALID")
    return [(fault.field, fault.code, fault.message) for fault in error.value.errors]


class TestReading:
    """What is read."""

    def test_a_manifest_with_all_that_it_names(self, home: Path) -> None:
        found = read_migration(home / "m.json")
        assert [of.rulebook.hash for of in found.rulebooks] == [load(refactored()).hash]
        assert [golden.case["case_id"] for golden in found.corpus.cases] == list(DEALS)
        assert found.candidate.rulebooks == (found.rulebooks[0].rulebook,)
        assert found.manifest.body == json.loads((home / "m.json").read_text())

    def test_a_manifest_and_a_rulebook_in_yaml(self, home: Path) -> None:
        named = json.loads((home / "m.json").read_text())
        named["candidate"]["rulebooks"][0]["path"] = "rulebooks/pricing.yml"
        (home / "m.yaml").write_text("# why\n" + write_yaml(named))
        (home / "rulebooks" / "pricing.yml").write_text(write_yaml({"description": "Discounts.", **refactored()}))
        found = read_migration(home / "m.yaml")
        assert found.manifest.hash == content_hash(named)
        assert found.rulebooks[0].rulebook.hash == load(refactored()).hash
        assert found.rulebooks[0].annotations == {"description": "Discounts."}

    def test_a_file_without_an_ending_is_read_by_how_it_begins(self, home: Path) -> None:
        content = (home / "m.json").read_text()
        (home / "as_json").write_text(f"\n {content}")
        (home / "as_yaml").write_text(write_yaml(json.loads(content)))
        assert read_migration(home / "as_json").manifest == read_migration(home / "as_yaml").manifest

    def test_without_a_corpus_the_published_one(self, tmp_path: Path) -> None:
        write(tmp_path, {"m.json": manifest(), "pricing.json": refactored()})
        found = read_migration(tmp_path / "m.json").corpus
        assert (found.published, len(found.cases)) == (True, 324)

    def test_a_corpus_that_the_user_names_comes_before_that_of_the_manifest(self, home: Path, tmp_path: Path) -> None:
        (home / "corpus" / "index.json").unlink()
        elsewhere = write(tmp_path / "elsewhere", deals(version="1"))
        found = read_migration(home / "m.json", corpus=elsewhere / "index.json").corpus
        assert {golden.rulebook["version"] for golden in found.cases} == {"1"}

    def test_the_fixtures_that_the_manifest_chooses(self, home: Path) -> None:
        named = json.loads((home / "m.json").read_text())
        write(home, {"m.json": {**named, "fixtures": ["deals.thin", "deals.usual"]}})
        assert [golden.case["case_id"] for golden in read_migration(home / "m.json").corpus.cases] == [
            "deals.usual",
            "deals.thin",
        ]

    def test_a_fixture_that_the_corpus_does_not_have(self, home: Path) -> None:
        named = json.loads((home / "m.json").read_text())
        write(home, {"m.json": {**named, "fixtures": ["deals.thin", "deals.gone", "golden"]}})
        assert refused(home) == [
            ("fixtures[1]", "unknown", f"The corpus {LABEL} has no case deals.gone."),
            ("fixtures[2]", "unknown", f"The corpus {LABEL} has no case golden."),
        ]

    def test_the_manifest_itself_is_reached_by_any_path(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(home)
        (home / "other.json").symlink_to("m.json")
        through = tmp_path / "outside" / ".." / "link" / "other.json"
        (tmp_path / "outside").mkdir()
        assert read_migration(through).manifest == read_migration(home / "m.json").manifest

    def test_what_a_linked_manifest_names_lies_where_the_user_looks(self, home: Path, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "m.json").symlink_to(home / "m.json")
        (fault,) = refused(elsewhere)
        assert fault[:2] == ("candidate.rulebooks[0].path", "FILE_UNREADABLE")


class TestFaults:
    """What is wrong with files inside of the folder."""

    def test_every_rulebook_at_fault_is_named(self, tmp_path: Path) -> None:
        named = ["missing.json", "text.json", "invalid.json", "other.json", "cases.yaml"]
        listed = [{"rulebook_id": f"r{number}", "path": path} for number, path in enumerate(named)]
        write(
            tmp_path,
            {
                "m.json": manifest(candidate={"rulebooks": listed}),
                "invalid.json": {**sample_rulebook(), "rules": []},
                "other.json": sample_rulebook(),
            },
        )
        (tmp_path / "text.json").write_text("{no}")
        (tmp_path / "cases.yaml").write_text("a: [\n")
        found = refused(tmp_path)
        assert [(field, code) for field, code, _ in found] == [
            ("candidate.rulebooks[0].path", "FILE_UNREADABLE"),
            ("candidate.rulebooks[1].path", "SVC_API_JSON_INVALID"),
            ("candidate.rulebooks[2].path", "RULEBOOK_INVALID"),
            ("candidate.rulebooks[3].rulebook_id", "rulebook_id"),
            ("candidate.rulebooks[4].path", "YAML_INVALID"),
        ]
        told = [message for _, _, message in found]
        assert told[0] == "missing.json cannot be read: No such file or directory."
        assert told[1].startswith("text.json is not valid JSON. It is not JSON: ")
        assert told[2].startswith("invalid.json is not a valid rulebook: rules: It must have at least 1 item.")
        assert told[3] == "other.json contains the rulebook pricing_exception. Give that id, or another file."
        assert told[4].startswith("cases.yaml:")

    def test_a_rulebook_nests_no_deeper_than_a_request_can_send(self, tmp_path: Path) -> None:
        write(tmp_path, {"m.json": manifest()})
        (tmp_path / "pricing.json").write_text('{"a":' + "[" * 40 + "]" * 40 + "}")
        ((_, code, message),) = refused(tmp_path)
        assert code == "SVC_API_JSON_INVALID"
        assert "nests deeper" in message

    @pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100, b"{} {}", b'{"a": 1, "a": 2}', b"1e999"])
    @pytest.mark.parametrize("name", ["m.json", "m.yaml"])
    def test_a_manifest_that_is_no_json_and_no_yaml(self, tmp_path: Path, name: str, content: bytes) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(MaterialRefused) as error:
            read_migration(tmp_path / name)
        assert error.value.code in ("SVC_API_JSON_INVALID", "YAML_INVALID", "MIGRATION_INVALID")
        assert error.value.code == "MIGRATION_INVALID" or error.value.message.startswith(str(tmp_path / name))

    def test_a_manifest_that_is_not_there(self, tmp_path: Path) -> None:
        for path in (tmp_path / "m.json", tmp_path / "nowhere" / "m.json", tmp_path, Path("a\0b")):
            with pytest.raises(OperatorError) as error:
                read_migration(path)
            assert error.value.code == "FILE_UNREADABLE"

    def test_every_file_of_a_corpus_at_fault_is_named(self, home: Path) -> None:
        corpus = indexed({"deals.json": deals()["deals.json"], "gone.json": deals(version="2")["deals.json"]})
        write(home / "corpus", corpus)
        (home / "corpus" / "gone.json").unlink()
        (home / "corpus" / "deals.json").write_text("[")
        assert [(field, code) for field, code, _ in refused(home)] == [
            ("files[0].path", "SVC_API_JSON_INVALID"),
            ("files[1].path", "FILE_UNREADABLE"),
        ]

    def test_a_wrong_hash_of_a_corpus_is_told(self, home: Path) -> None:
        file = deals()["deals.json"]
        write(home / "corpus", {"deals.json": {**file, "title": "Others"}})
        assert [(field, code) for field, code, _ in refused(home)] == [("files[0].sha256", "hash")]

    @pytest.mark.parametrize(
        ("name", "most", "field"),
        [
            ("rulebooks/pricing.json", MAX_RULEBOOK_FILE, "candidate.rulebooks[0].path"),
            ("corpus/index.json", MAX_CORPUS_FILE, "corpus"),
            ("corpus/deals.json", MAX_CORPUS_FILE, "files[0].path"),
        ],
    )
    def test_a_file_that_is_too_large(self, home: Path, name: str, most: int, field: str) -> None:
        os.truncate(home / name, most + 1)
        assert refused(home) == [
            (field, "FILE_UNREADABLE", f"{told(name)} cannot be read: it is larger than {most} bytes.")
        ]

    def test_a_manifest_that_is_too_large(self, home: Path) -> None:
        os.truncate(home / "m.json", MAX_MANIFEST + 1)
        with pytest.raises(OperatorError, match=f"it is larger than {MAX_MANIFEST} bytes"):
            read_migration(home / "m.json")

    def test_files_that_are_too_large_together(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "MAX_CORPUS", 1000)
        ((field, _, message),) = refused(home)
        assert (field, "the files are larger than 1000 bytes together" in message) == ("files[0].path", True)


def told(name: str) -> str:
    """What a file is called in errors: its path from where it is named."""
    return name.removeprefix("corpus/") if name == "corpus/deals.json" else name


def link(path: Path, target: str | Path) -> None:
    """Puts a symbolic link in the place of a file or a folder, which moves away."""
    if path.exists():
        path.rename(path.with_name(f"{path.name}.moved"))
    path.symlink_to(target)


LINKS: Final[dict[str, list[tuple[str, str]]]] = {
    "a rulebook that leads outside": [("rulebooks/pricing.json", "{outside}/pricing.json")],
    "a rulebook that leads outside by a relative way": [("rulebooks/pricing.json", "../../outside/pricing.json")],
    "a rulebook that leads to another link": [
        ("hop.json", "{outside}/pricing.json"),
        ("rulebooks/pricing.json", "../hop.json"),
    ],
    "a folder that leads outside": [("rulebooks", "{outside}")],
    "an index that leads outside": [("corpus/index.json", "{outside}/index.json")],
    "a file of cases that leads outside": [("corpus/deals.json", "{outside}/deals.json")],
    "a folder of a corpus that leads outside": [("corpus", "{outside}")],
}
"""Places in the folder of the manifest, and where links there lead."""


class TestOutside:
    """What lies outside of the folder is never opened."""

    def require_closed(self, opened: list[str], outside: Path) -> None:
        assert opened
        assert [path for path in opened if path.startswith(str(outside))] == []

    @pytest.mark.parametrize("name", LINKS)
    def test_a_symbolic_link_is_not_followed(self, home: Path, outside: Path, opened: list[str], name: str) -> None:
        for place, target in LINKS[name]:
            link(home / place, target.format(outside=outside))
        opened.clear()
        ((_, code, message),) = refused(home)
        assert code == "FILE_UNREADABLE"
        assert "it is a symbolic link, which is not followed; put the file itself there." in message
        self.require_closed(opened, outside)

    def test_what_a_watcher_sees_is_what_is_opened(self, home: Path, opened: list[str]) -> None:
        read_migration(home / "m.json")
        for name in ("m.json", "rulebooks/pricing.json", "corpus/index.json", "corpus/deals.json"):
            assert str(home / name) in opened

    def test_a_link_inside_of_the_folder_is_not_followed_either(self, home: Path) -> None:
        (home / "rulebooks" / "other.json").write_bytes((home / "rulebooks" / "pricing.json").read_bytes())
        link(home / "rulebooks" / "pricing.json", "other.json")
        ((_, _, message),) = refused(home)
        assert "it is a symbolic link" in message

    def test_a_link_that_leads_to_itself_or_nowhere(self, home: Path) -> None:
        for target in ("pricing.json", "nowhere.json"):
            (home / "rulebooks" / "pricing.json").unlink()
            (home / "rulebooks" / "pricing.json").symlink_to(target)
            ((_, _, message),) = refused(home)
            assert "it is a symbolic link" in message

    @pytest.mark.parametrize("path", ["../outside/pricing.json", "/etc/hostname", "a\\..\\b", "a\0b"])
    @pytest.mark.parametrize("member", ["corpus", "rulebook"])
    def test_a_path_that_leaves_the_folder_is_refused_before_anything_is_opened(
        self, home: Path, outside: Path, opened: list[str], member: str, path: str
    ) -> None:
        named = json.loads((home / "m.json").read_text())
        if member == "corpus":
            named["corpus"] = path
        else:
            named["candidate"]["rulebooks"][0]["path"] = path
        write(home, {"m.json": named})
        opened.clear()
        ((_, code, _),) = refused(home)
        assert code == "pattern"
        assert {os.path.basename(each) for each in opened} == {"migrations", "m.json"}  # noqa: PTH119 - as texts

    def test_a_file_that_is_replaced_by_a_link_while_it_is_read(
        self, home: Path, outside: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = os.stat

        def swapping(name: Any, **named: Any) -> os.stat_result:
            found = real(name, **named)
            if name == "pricing.json":
                link(home / "rulebooks" / name, outside / name)
            return found

        monkeypatch.setattr(os, "stat", swapping)
        opened.clear()
        ((_, code, _),) = refused(home)
        assert code == "FILE_UNREADABLE"
        self.require_closed(opened, outside)

    def test_a_folder_that_is_replaced_by_a_link_while_it_is_read(
        self, home: Path, outside: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = os.stat

        def swapping(name: Any, **named: Any) -> os.stat_result:
            found = real(name, **named)
            if name == "rulebooks":
                link(home / "rulebooks", outside)
            return found

        monkeypatch.setattr(os, "stat", swapping)
        opened.clear()
        ((_, code, _),) = refused(home)
        assert code == "FILE_UNREADABLE"
        self.require_closed(opened, outside)

    def test_an_index_that_the_user_names_lies_anywhere_and_its_files_beside_it(
        self, home: Path, outside: Path, tmp_path: Path
    ) -> None:
        assert read_corpus_at(outside / "index.json").label == LABEL
        apart = write(tmp_path / "apart", {})
        apart.mkdir()
        (apart / "index.json").symlink_to(outside / "index.json")
        with pytest.raises(MaterialRefused) as error:
            read_corpus_at(apart / "index.json")
        assert [(fault.field, fault.code) for fault in error.value.errors] == [("files[0].path", "FILE_UNREADABLE")]
        (apart / "deals.json").symlink_to(outside / "deals.json")
        with pytest.raises(MaterialRefused) as error:
            read_corpus_at(apart / "index.json")
        assert "it is a symbolic link" in error.value.errors[0].message
        write(apart, {"deals.json": deals()["deals.json"]})


class TestKinds:
    """What is no regular file is not read, and nothing waits for it."""

    def socket_at(self, path: Path) -> None:
        # The path of a socket has at most 107 bytes.
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(path.name)
        finally:
            os.chdir(here)

    @pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
    @pytest.mark.parametrize("name", ["rulebooks/pricing.json", "corpus/index.json", "corpus/deals.json"])
    def test_another_kind_of_file(self, home: Path, name: str, kind: str) -> None:
        make: dict[str, Callable[[Path], None]] = {"pipe": os.mkfifo, "folder": Path.mkdir, "socket": self.socket_at}
        (home / name).unlink()
        make[kind](home / name)
        ((_, code, message),) = refused(home)
        assert (code, message) == ("FILE_UNREADABLE", f"{told(name)} cannot be read: it is not a file.")

    def test_a_pipe_as_the_manifest(self, home: Path) -> None:
        (home / "m.json").unlink()
        os.mkfifo(home / "m.json")
        with pytest.raises(OperatorError, match="it is not a file"):
            read_migration(home / "m.json")

    def test_a_file_where_a_folder_should_be(self, home: Path) -> None:
        named = json.loads((home / "m.json").read_text())
        named["candidate"]["rulebooks"][0]["path"] = "m.json/pricing.json"
        write(home, {"m.json": named})
        ((_, code, message),) = refused(home)
        assert (code, message) == (
            "FILE_UNREADABLE",
            "m.json/pricing.json cannot be read: it is not in a folder.",
        )

    def test_no_descriptor_stays_open(self, home: Path) -> None:
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - its own
        read_migration(home / "m.json")
        (home / "rulebooks" / "pricing.json").unlink()
        with pytest.raises(GateError):
            read_migration(home / "m.json")
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - its own
