"""Installs what dist/ holds for each Python of this machine, and uses it as a user would: `make release-check`.

Each installation is a bare environment, filled by pip from the package index with the newest versions that fit. With
`--python` it is those Pythons instead of the ones found. This needs no package but Python's own, so that it also runs
in a container or a chroot that has nothing but a Python:

    python3.14 -m tests.release.installs --python python3.14
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

ROOT: Final = Path(__file__).parents[2]
DIST: Final = ROOT / "dist"
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
REQUEST: Final = ROOT / "data" / "requests" / "pricing_exception.json"
RULEBOOK: Final = ROOT / "data" / "rulebooks" / "pricing_exception.json"

SERVICE: Final = "serve, decide, verify, guard, demo, lake, effectiveness"

PATIENCE: Final = 120.0
"""How long a server may take to start, in seconds."""

GUARD: Final = """
import sys
from gate.client import AlreadyStarted, Client
url, key, registry, store = sys.argv[1:]
client = Client(url, key_file=key, registry=registry, store=store)
facts, target, ran = {"discount_percent": 10, "margin_percent": 22}, ("crm", "deal-1042"), 0
for _ in range(2):
    try:
        with client.guard("pricing_exception@2026-06-11", facts, action="approve_discount", target=target):
            ran += 1
    except AlreadyStarted:
        ran += 10
assert ran == 11, ran
"""

EFFECTIVENESS: Final = """
import sys
from workbench import effectiveness, open_lake
report = effectiveness(open_lake(sys.argv[1]).scope("lumen-retail"), "refund_policy")
assert report.to_dict()["versions"], report.to_dict()
report.plot().save(sys.argv[2])
"""

# Opened without a proxy, whatever the environment says: the server is on this machine.
_OPENER: Final = build_opener(ProxyHandler({}))


class Unfit(Exception):
    """An installation does not do what it should."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with the product.

    Attributes:
        folder: The environment.
        work: A folder for what its commands write.
    """

    folder: Path
    work: Path

    def run(self, *words: str, expect: int = 0) -> str:
        """What a command of the environment prints.

        Args:
            words: The command; its program is one of the environment.
            expect: Its exit code.

        Raises:
            Unfit: It ends otherwise.
        """
        done = subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]],
            cwd=self.work,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != expect:
            raise Unfit(f"`{' '.join(words)[:120]}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    @contextmanager
    def serving(self, home: Path) -> Iterator[str]:
        """The URL of `gate serve --demo` while the block runs."""
        port = _free_port()
        url = f"http://127.0.0.1:{port}"
        command = [str(self.folder / "bin" / "gate"), "serve", "--demo", "--home", str(home), "--port", str(port)]
        with (self.work / "server.txt").open("w+") as log:
            server = subprocess.Popen(command, cwd=self.work, env=_environment(), stdout=log, stderr=log)
            try:
                _wait_until_ready(url, server)
                yield url
            except (Unfit, URLError) as error:
                log.seek(0)
                raise Unfit(f"{error}\n{log.read()}") from error
            finally:
                server.terminate()
                server.wait(60)
        if server.returncode != 0:
            raise Unfit(f"The server ended with {server.returncode} when it was asked to stop.")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        python: The version of Python.
        installed: What was installed.
        did: What was done with it.
        seconds: How long it took.
        failure: Why it failed; empty where it did not.
    """

    python: str
    installed: str
    did: str
    seconds: float
    failure: str = ""


def main() -> int:
    """Checks every Python; 1 where something fails, 2 where there is nothing to check."""
    parser = argparse.ArgumentParser(prog="python -m tests.release.installs", description=__doc__)
    parser.add_argument("--python", action="append", help="a Python to check, instead of those that are found")
    parser.add_argument("--dist", type=Path, default=DIST, help="the folder with the wheel and the source distribution")
    arguments = parser.parse_args()
    wheels, sdists = (sorted(arguments.dist.glob(f"decision_gate-*{end}")) for end in (".whl", ".tar.gz"))
    pythons = arguments.python or found_pythons()
    if (len(wheels), len(sdists)) != (1, 1) or not pythons:
        sys.stderr.write(f"{arguments.dist} must hold one wheel and one source distribution (`make dist`).\n")
        return 2
    rows: list[Row] = []
    for place, python in enumerate(pythons):
        rows += check_python(python, wheels[0], sdists[0] if place == 0 else None)
    missing = [] if arguments.python else [of for of in VERSIONS if not any(row.python.startswith(of) for row in rows)]
    for row in rows:
        if row.failure:
            sys.stderr.write(f"\n{row.python}, {row.installed}: {row.failure}\n")
    sys.stdout.write(table(rows))
    sys.stdout.writelines(f"Python {version} is not on this machine.\n" for version in missing)
    return int(any(row.failure for row in rows))


def found_pythons() -> list[str]:
    """A Python of each version in `VERSIONS` that is on the path or among pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in VERSIONS:
        kept = sorted(pyenv.glob(f"{version}.*/bin/python{version}"), key=lambda path: _numbers(path.parts[-3]))
        on_path = shutil.which(f"python{version}")
        if kept:
            found.append(str(kept[-1]))
        # A shim of pyenv is there for versions that it may not run.
        elif on_path and "shims" not in on_path:
            found.append(on_path)
    return found


def check_python(python: str, wheel: Path, sdist: Path | None) -> list[Row]:
    """The rows of one Python."""
    command = [python, "-c", "import platform; print(platform.python_version())"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    rows = []
    with TemporaryDirectory(prefix="release-check-") as directory:
        folder = Path(directory)

        def check(archive: Path, extras: str, use: Callable[[Installation], None], did: str) -> Installation:
            installed = f"{'wheel' if archive.suffix == '.whl' else 'sdist'}{extras}"
            sys.stderr.write(f"Python {version}: {installed}: ")
            sys.stderr.flush()
            begun = time.monotonic()
            installation = _installation(folder / installed)
            try:
                _install(python, installation, archive, extras)
                use(installation)
                failure = ""
            except (Unfit, OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
                failure = str(error) or repr(error)
            rows.append(Row(version, installed, did, time.monotonic() - begun, failure))
            sys.stderr.write("FAILED\n" if failure else "ok\n")
            return installation

        def use_service(full: Installation) -> None:
            _use_service(full, base)
            _use_lake(full)

        base = check(wheel, "", _use_base, "client, verifier")
        check(wheel, "[authoring]", _use_authoring, "rulebook check")
        for archive in [wheel] if sdist is None else [wheel, sdist]:
            check(archive, "[server,workbench]", use_service, SERVICE)
    return rows


def table(rows: list[Row]) -> str:
    """The rows as text."""
    cells = [("python", "install", "done with it", "seconds", "result")]
    cells += [
        (row.python, row.installed, row.did, f"{row.seconds:.0f}", "FAILED" if row.failure else "ok") for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join("  ".join(map(str.ljust, line, widths)).rstrip() + "\n" for line in cells)


def _installation(folder: Path) -> Installation:
    work = folder.with_name(f"{folder.name}-work")
    work.mkdir()
    return Installation(folder, work)


def _install(python: str, into: Installation, archive: Path, extras: str) -> None:
    subprocess.run([python, "-m", "venv", str(into.folder)], capture_output=True, check=True)
    into.run("pip", "install", "--quiet", f"{archive.resolve()}{extras}")
    version = re.split(r"-|\.tar", archive.name)[1]
    told = into.run("gate", "--version")
    if told != f"gate {version}\n":
        raise Unfit(f"`gate --version` prints {told!r}.")


def _use_base(base: Installation) -> None:
    told = base.run("gate", "serve", expect=2)
    if "[server]" not in told:
        raise Unfit(f"`gate serve` does not say which extra is missing:\n{told}")
    base.run("python", "-c", "from gate.client import Client; import gate.verify")


def _use_authoring(authoring: Installation) -> None:
    authoring.run("gate", "rulebook", "check", str(RULEBOOK))


def _use_service(full: Installation, base: Installation) -> None:
    """Decides over HTTP, verifies the record with this installation and the base one, and guards with the base one."""
    home, record, keys = full.work / "home", full.work / "record.json", full.work / "keys.json"
    with full.serving(home) as url:
        key = (home / "demo.key").read_text().strip()
        headers = {"x-api-key": key, "content-type": "application/json"}
        record.write_bytes(_fetch(Request(f"{url}/api/decide", REQUEST.read_bytes(), headers)))
        keys.write_bytes(_fetch(Request(f"{url}/api/decision/receipt-keys")))
        if json.loads(record.read_bytes())["verdict"] != "yes":
            raise Unfit(f"The decision is no yes: {record.read_text()}")
        for installation in (full, base):
            installation.run("gate", "verify", str(record), "--registry", str(keys), "--input", str(REQUEST))
            changed = installation.work / "changed.json"
            changed.write_text(record.read_text().replace("1200.5", "9200.5"))
            installation.run("gate", "verify", str(changed), "--registry", str(keys), expect=1)
        store = base.work / f"{full.folder.name}.db"
        base.run("python", "-c", GUARD, url, str(home / "demo.key"), str(keys), str(store))
    full.run("gate", "chain", "check", "--home", str(home))


def _use_lake(full: Installation) -> None:
    demo = full.work / "demo"
    full.run("gate", "demo", "--home", str(demo), "--decisions", "2000")
    full.run("gate", "lake", "export", "--home", str(demo))
    full.run("python", "-c", EFFECTIVENESS, str(demo / "lake"), str(full.work / "effectiveness.png"))


def _environment() -> dict[str, str]:
    """The environment without what would lead to another instance or another installation."""
    other = ("GATE_", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(other)}


def _wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        try:
            _fetch(Request(f"{url}/readyz"))
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise Unfit("The server did not start.")


def _fetch(request: Request) -> bytes:
    with _OPENER.open(request, timeout=60) as response:
        content: bytes = response.read()
        return content


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


if __name__ == "__main__":
    sys.exit(main())
