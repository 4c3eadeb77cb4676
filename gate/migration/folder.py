"""The files of a migration, read from the folder of its manifest and from nowhere else.

    migration = read_migration(Path("migrations/margin.yaml"))
    migration.candidate, migration.corpus

A manifest comes from its author, so its file names are not trusted. Each part of a path is opened in the folder that
was opened before it, and no symbolic link is followed. Only the manifest itself, and an index that the user gives, may
have any path. This module is the edge: the other modules are pure.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gate.encoding.strict_json import MAX_REQUEST_DEPTH, MAX_REQUEST_VALUES, parse, parse_document
from gate.errors import FieldError, GateError, MaterialRefused, OperatorError, RulebookRefused
from gate.migration.corpus import Corpus, published_corpus, read_corpus, read_index
from gate.migration.drift import Candidate
from gate.migration.manifest import Manifest, NamedRulebook, invalid, read_manifest
from gate.rulebooks.authoring import read_authored
from gate.rulebooks.documents import Annotations
from gate.rulebooks.rulebook import Rulebook, load

MAX_MANIFEST: Final = 1024 * 1024
"""How large the file of a manifest may be, in bytes."""

MAX_RULEBOOK_FILE: Final = 1024 * 1024
"""How large the file of a candidate may be, in bytes."""

MAX_CORPUS_FILE: Final = 16 * 1024 * 1024
"""How large an index, or a file of cases, may be, in bytes."""

MAX_CORPUS: Final = 128 * 1024 * 1024
"""How large the files of cases of a corpus may be together, in bytes."""

YAML_SUFFIXES: Final = (".yaml", ".yml")
"""How the names of YAML files end."""


@dataclass(frozen=True, slots=True)
class CandidateRulebook:
    """A rulebook that a candidate names, as it was read.

    Attributes:
        rulebook: The rulebook.
        annotations: The author's comments; no hash covers them.
    """

    rulebook: Rulebook
    annotations: Annotations


@dataclass(frozen=True, slots=True)
class Migration:
    """A manifest with the files that it names.

    Attributes:
        manifest: The manifest.
        rulebooks: The rulebooks of the candidate, in the order of the manifest.
        corpus: The corpus, with the fixtures alone that the manifest chooses.
    """

    manifest: Manifest
    rulebooks: tuple[CandidateRulebook, ...]
    corpus: Corpus

    @property
    def candidate(self) -> Candidate:
        """The candidate, as the dry run takes it."""
        return Candidate(
            self.manifest.evaluator_version, tuple(of.rulebook for of in self.rulebooks), self.manifest.adapters
        )


def read_migration(path: Path, *, corpus: Path | None = None) -> Migration:
    """Reads a manifest, the rulebooks that it names, and a corpus.

    Args:
        path: The manifest, in JSON or YAML.
        corpus: The index of a corpus, in place of the one that the manifest names.

    Raises:
        OperatorError: `FILE_UNREADABLE`: the manifest, or the index that the user names, cannot be read.
        MaterialRefused: `SVC_API_JSON_INVALID`, `YAML_INVALID`, `MIGRATION_INVALID` or `CORPUS_INVALID`.
    """
    with _opened(path) as folder:
        content = folder.read(path.name, str(path), MAX_MANIFEST, follow=True)
        return _migration(folder, read_manifest(_value(content, str(path))), corpus)


def read_draft(body: object, path: Path) -> Migration:
    """Reads what a manifest names that is not written yet.

    Args:
        body: The manifest.
        path: Where it is to be written.

    Raises:
        OperatorError: `FILE_UNREADABLE`: its folder cannot be read.
        MaterialRefused: `SVC_API_JSON_INVALID`, `YAML_INVALID`, `MIGRATION_INVALID` or `CORPUS_INVALID`.
    """
    manifest = read_manifest(body)
    with _opened(path) as folder:
        return _migration(folder, manifest, None)


def _migration(folder: _Folder, manifest: Manifest, corpus: Path | None) -> Migration:
    rulebooks = _rulebooks(folder, manifest.rulebooks)
    if corpus is not None:
        found = read_corpus_at(corpus)
    elif manifest.corpus is not None:
        found = _named_corpus(folder, manifest.corpus)
    else:
        found = published_corpus()
    return Migration(manifest, rulebooks, _chosen(found, manifest.fixtures))


def read_rulebook(path: Path) -> Rulebook:
    """Reads a rulebook that the user names, in JSON or YAML, without its annotations.

    Raises:
        OperatorError: `FILE_UNREADABLE`.
        MaterialRefused: `SVC_API_JSON_INVALID` or `YAML_INVALID`.
        RulebookRefused: `RULEBOOK_INVALID`.
    """
    with _opened(path) as folder:
        content = folder.read(path.name, str(path), MAX_RULEBOOK_FILE, follow=True)
    authored = read_authored(_value(content, str(path), as_request=True))
    if authored.errors:
        first = authored.errors[0]
        raise RulebookRefused(
            "RULEBOOK_INVALID",
            f"{path} is not a valid rulebook: {first.field or 'the file'}: {first.message} `gate rulebook check` "
            "shows all errors.",
        )
    return load(authored.body)


def read_corpus_at(path: Path) -> Corpus:
    """Reads a corpus whose index the user gives. Its files are in the folder of the index.

    Raises:
        OperatorError: `FILE_UNREADABLE`: the index cannot be read.
        MaterialRefused: `SVC_API_JSON_INVALID` or `CORPUS_INVALID`.
    """
    with _opened(path) as folder:
        return _corpus(folder, folder.read(path.name, str(path), MAX_CORPUS_FILE, follow=True), str(path))


def _rulebooks(folder: _Folder, named: Sequence[NamedRulebook]) -> tuple[CandidateRulebook, ...]:
    found: list[CandidateRulebook] = []
    errors: list[FieldError] = []
    for index, of in enumerate(named):
        at = f"candidate.rulebooks[{index}]"
        try:
            value = _value(folder.read_below(of.path, MAX_RULEBOOK_FILE), of.path, as_request=True)
        except GateError as error:
            errors.append(FieldError(f"{at}.path", error.code, error.message))
            continue
        authored = read_authored(value)
        if authored.errors:
            first = authored.errors[0]
            message = (
                f"{of.path} is not a valid rulebook: {first.field or 'the file'}: {first.message} `gate rulebook "
                "check` shows all errors."
            )
            errors.append(FieldError(f"{at}.path", "RULEBOOK_INVALID", message))
        elif (rulebook_id := authored.body["rulebook_id"]) != of.rulebook_id:
            message = f"{of.path} contains the rulebook {rulebook_id}. Give that id, or another file."
            errors.append(FieldError(f"{at}.rulebook_id", "rulebook_id", message))
        else:
            found.append(CandidateRulebook(load(authored.body), authored.annotations))
    if errors:
        raise invalid(errors)
    return tuple(found)


def _named_corpus(folder: _Folder, name: str) -> Corpus:
    """The corpus that a manifest names."""
    *above, last = name.split("/")
    try:
        with folder.below(above, name) as inner:
            return _corpus(inner, inner.read(last, name, MAX_CORPUS_FILE), name)
    except OperatorError as error:
        raise invalid([FieldError("corpus", error.code, error.message)]) from error


def _corpus(folder: _Folder, content: bytes, name: str) -> Corpus:
    index = read_index(_json(content, name))
    documents: dict[str, object] = {}
    errors: list[FieldError] = []
    size = 0
    for place, file in enumerate(index["files"]):
        path = file["path"]
        try:
            text = folder.read(path, path, MAX_CORPUS_FILE)
            size += len(text)
            if size > MAX_CORPUS:
                raise _unreadable(path, f"with this file, the files are larger than {MAX_CORPUS} bytes together")
            documents[path] = _json(text, path)
        except GateError as error:
            errors.append(FieldError(f"files[{place}].path", error.code, error.message))
    if errors:
        raise MaterialRefused(
            "CORPUS_INVALID", f"Files that {name} lists are unusable, so nothing was evaluated. See below.", errors
        )
    return read_corpus(index, documents)


def _chosen(corpus: Corpus, fixtures: Sequence[str] | None) -> Corpus:
    if fixtures is None:
        return corpus
    chosen = corpus.only(fixtures)
    known = {golden.case["case_id"] for golden in chosen.cases}
    unknown = [
        FieldError(f"fixtures[{index}]", "unknown", f"The corpus {corpus.label} has no case {fixture}.")
        for index, fixture in enumerate(fixtures)
        if fixture not in known
    ]
    if unknown:
        raise invalid(unknown)
    return chosen


def _value(content: bytes, name: str, *, as_request: bool = False) -> object:
    """The JSON value of a file in JSON or YAML, by its name, else by how it begins.

    Args:
        content: The bytes of the file.
        name: How messages name it.
        as_request: Whether a request must be able to hold it, one level deep.
    """
    as_yaml = name.endswith(YAML_SUFFIXES) or (not name.endswith(".json") and not content.lstrip().startswith(b"{"))
    if not as_yaml:
        return _json(content, name, as_request=as_request)
    # Loaded where it is used: reading JSON does not wait for the reader of YAML.
    from gate.encoding.yaml_text import read_yaml

    try:
        return read_yaml(content, max_depth=MAX_REQUEST_DEPTH - 1, max_values=MAX_REQUEST_VALUES).value
    except MaterialRefused as error:
        line = f":{error.details['line']}" if "line" in error.details else ""
        raise MaterialRefused(error.code, f"{name}{line} is not valid YAML. {error.message}") from error


def _json(content: bytes, name: str, *, as_request: bool = False) -> Any:
    try:
        return parse(content, max_depth=MAX_REQUEST_DEPTH - 1) if as_request else parse_document(content)
    except MaterialRefused as error:
        message = error.message.replace("The body", "It", 1)
        raise MaterialRefused(error.code, f"{name} is not valid JSON. {message}") from error


class _Folder:
    """An open folder, by its descriptor: whatever becomes of its path, its files are those of this folder."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_below(self, path: str, most: int) -> bytes:
        """The bytes of a file in the folder or below.

        Args:
            path: Its path, as manifests name files.
            most: How many bytes it may have.

        Raises:
            OperatorError: `FILE_UNREADABLE`.
        """
        *above, last = path.split("/")
        with self.below(above, path) as folder:
            return folder.read(last, path, most)

    @contextmanager
    def below(self, names: Sequence[str], path: str) -> Iterator[_Folder]:
        """A folder below this one, open while the block runs.

        Args:
            names: The names that lead to it, each of a folder in the one before.
            path: What errors call the file that is looked for.

        Raises:
            OperatorError: `FILE_UNREADABLE`.
        """
        descriptor = os.dup(self._descriptor)
        try:
            for name in names:
                inner = _open(name, path, descriptor, stat.S_ISDIR, os.O_DIRECTORY | os.O_NOFOLLOW)
                os.close(descriptor)
                descriptor = inner
            yield _Folder(descriptor)
        finally:
            os.close(descriptor)

    def read(self, name: str, path: str, most: int, *, follow: bool = False) -> bytes:
        """The bytes of a file in the folder.

        Args:
            name: Its name.
            path: What errors call it.
            most: How many bytes it may have.
            follow: Whether it may be a symbolic link.

        Raises:
            OperatorError: `FILE_UNREADABLE`.
        """
        # Opening a pipe would wait for a writer without O_NONBLOCK.
        flags = os.O_NONBLOCK if follow else os.O_NONBLOCK | os.O_NOFOLLOW
        with os.fdopen(_open(name, path, self._descriptor, stat.S_ISREG, flags), "rb") as file:
            try:
                content = file.read(most + 1)
            except OSError as error:
                raise _unreadable(path, f"{error.strerror}") from error
        if len(content) > most:
            raise _unreadable(path, f"it is larger than {most} bytes")
        return content


@contextmanager
def _opened(path: Path) -> Iterator[_Folder]:
    """The folder of a file that the user names, open while the block runs."""
    try:
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), _reason(error)) from error
    try:
        yield _Folder(descriptor)
    finally:
        os.close(descriptor)


def _open(name: str, path: str, folder: int, is_of_kind: Any, flags: int) -> int:
    """A descriptor of something of a kind in an open folder."""
    follow = not flags & os.O_NOFOLLOW
    try:
        # Looked at before it is opened, because opening a device may do something.
        _require_kind(os.stat(name, dir_fd=folder, follow_symlinks=follow), path, is_of_kind)
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | flags, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise _unreadable(path, _reason(error)) from error
    try:
        # And again: it may have been replaced in between.
        _require_kind(os.fstat(descriptor), path, is_of_kind)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_kind(found: os.stat_result, path: str, is_of_kind: Any) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise _unreadable(path, "it is a symbolic link, which is not followed; put the file itself there")
    if not is_of_kind(found.st_mode):
        raise _unreadable(path, "it is not a file" if is_of_kind is stat.S_ISREG else "it is not in a folder")


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or "it is not a file name"


def _unreadable(path: str, why: str) -> OperatorError:
    return OperatorError("FILE_UNREADABLE", f"{path} cannot be read: {why}.")
