"""Servers as processes of their own: started, awaited, looked at from outside, and always stopped."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.samples import ROOT

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 10
_POLL_SECONDS: Final = 0.02
_ESTABLISHED: Final = "01"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class ServerFailed(Exception):
    """A server did not start, or did not take connections."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU time in seconds, in user mode and in the kernel. Their sum is exact; the split is the kernel's estimate."""

    user_s: float
    system_s: float

    def __add__(self, other: Cpu) -> Cpu:
        return Cpu(self.user_s + other.user_s, self.system_s + other.system_s)

    def __sub__(self, earlier: Cpu) -> Cpu:
        return Cpu(self.user_s - earlier.user_s, self.system_s - earlier.system_s)


def cpu_of(pid: int, *, and_ended_children: bool = False) -> Cpu:
    """The CPU time that a process has taken with all its threads, and where asked, its children that ended."""
    # The name before it is in brackets and may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, children_user, children_system = (int(field) / _TICKS for field in fields[11:15])
    return Cpu(user, system) + (Cpu(children_user, children_system) if and_ended_children else Cpu(0, 0))


def children_of(pid: int) -> list[int]:
    """The processes that a process started, by whichever of its threads, and that still run."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end at any moment, and leaves its children to another one.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


@dataclass(frozen=True, slots=True)
class Server:
    """A running server on a loopback port.

    Attributes:
        pid: Its main process.
        port: Where it listens.
    """

    pid: int
    port: int

    def workers(self) -> list[int]:
        """The processes that answer requests."""
        return [pid for pid in children_of(self.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def resident_mb(self) -> dict[int, float]:
        """The resident memory of each worker."""
        return {pid: _resident_kb(pid) / 1024 for pid in self.workers()}

    def own_mb(self) -> float:
        """The resident memory of its main process."""
        return _resident_kb(self.pid) / 1024

    def cpu(self) -> Cpu:
        """The CPU time that the workers have taken, with that of what runs adapters for them."""
        return sum((_cpu_of_tree(pid) for pid in self.workers()), Cpu(0, 0))


@contextmanager
def running(command: Sequence[str], port: int, log: Path, *, path: str = "/api/decision/status") -> Iterator[Server]:
    """A server that answers on its port, running while the block does.

    Args:
        command: The command that starts it in the foreground.
        port: Its port.
        log: The file for its output.
        path: The path that returns 200 once it is ready.

    Raises:
        ServerFailed: It did not start.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=ROOT, env=environment(), start_new_session=True
        )
    try:
        _await_ready(process, port, path, log)
        yield Server(process.pid, port)
    finally:
        _stop(process)


def environment() -> dict[str, str]:
    """This process's environment without settings of an instance, which would send records into someone's ledger."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GATE_")}


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def connect_evenly(server: Server, count: int, workers: int) -> list[socket.socket]:
    """Open connections, the same number to each worker.

    Which worker accepts a connection is chance, and an uneven split costs up to half of the throughput: chance would
    then be most of what a comparison shows.

    Args:
        server: The server.
        count: How many connections; a multiple of the workers.
        workers: How many workers the server has.

    Raises:
        ServerFailed: The workers do not take them.
    """
    deadline = time.monotonic() + _START_SECONDS
    taken: dict[int, list[socket.socket]] = {}
    surplus: list[socket.socket] = []
    try:
        while sum(map(len, taken.values())) < count:
            if time.monotonic() > deadline:
                raise ServerFailed(f"The workers on port {server.port} do not share out their connections.")
            connection = socket.create_connection(("127.0.0.1", server.port))
            surplus.append(connection)
            mine = taken.setdefault(_worker_of(connection, server, deadline), [])
            if len(mine) < count // workers:
                mine.append(surplus.pop())
    except BaseException:
        for connection in (connection for mine in taken.values() for connection in mine):
            connection.close()
        raise
    finally:
        for connection in surplus:
            connection.close()
    return [connection for mine in taken.values() for connection in mine]


def _worker_of(connection: socket.socket, server: Server, deadline: float) -> int:
    while time.monotonic() < deadline:
        inode = _server_inode(connection.getsockname()[1], server.port)
        for pid in server.workers():
            if inode in _sockets(pid):
                return pid
        time.sleep(_POLL_SECONDS)
    raise ServerFailed(f"No worker of the server on port {server.port} accepts a connection.")


def _server_inode(client_port: int, server_port: int) -> str | None:
    ends = [f"0100007F:{server_port:04X}", f"0100007F:{client_port:04X}", _ESTABLISHED]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1:4] == ends:
            return f"socket:[{fields[9]}]"
    return None


def _sockets(pid: int) -> set[str]:
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(descriptor.readlink()))
    return found


def _cpu_of_tree(pid: int) -> Cpu:
    """The CPU time of a process and of all that it started, what ended and was waited for included."""
    taken = cpu_of(pid, and_ended_children=True)
    for child in children_of(pid):
        # It may end at any moment.
        with suppress(FileNotFoundError, ProcessLookupError):
            taken += _cpu_of_tree(child)
    return taken


def _resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def _await_ready(process: subprocess.Popen[bytes], port: int, path: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(port, path):
            return
        time.sleep(_POLL_SECONDS)
    raise ServerFailed(f"The server on port {port} did not start. Its output:\n{log.read_text(errors='replace')}")


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    try:
        process.terminate()
        # One that was still starting may not have heard it.
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    finally:
        # Its workers are in its session, so none of them outlives it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
