"""A process that forks. Each test starts one of its own, so that this loads little."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from pathlib import Path

from gate.client.store import SqliteStore
from gate.client.store.intents import StoreUnavailable
from tests.gate.client.store.support import attempt


def outlive_the_parent(file: Path) -> None:
    """A child uses the store that it was forked with, and goes on after every other process has closed the file."""
    store = SqliteStore(file)
    store.hold(attempt("before"))
    here, there = socket.socketpair()
    if (child := os.fork()) == 0:
        try:
            here.close()
            store.hold(attempt("child, not alone"))
            there.send(b"1")
            there.recv(1)
            store.hold(attempt("child, alone"))
            there.send(b"2")
            there.recv(1)
        finally:
            # As a crash would.
            os._exit(7)
    there.close()
    store.hold(attempt("parent"))
    assert here.recv(1) == b"1"
    store.close()
    here.send(b"1")
    assert here.recv(1) == b"2"
    with SqliteStore(file) as other:
        other.hold(attempt("another process"))
    here.close()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def fork_while_threads_write(file: Path) -> None:
    """Forks again and again while threads are in the middle of writing; each child writes as well."""
    store = SqliteStore(file)
    ended = threading.Event()

    def write(part: int) -> None:
        number = 0
        while not ended.is_set():
            store.hold(attempt(f"thread-{part}-{number}"))
            number += 1

    threads = [threading.Thread(target=write, args=(part,)) for part in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(10):
            if (child := os.fork()) == 0:
                held = False
                try:
                    held = store.hold(attempt(f"child-{number}"))
                finally:
                    os._exit(0 if held else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    store.close()


def fork_without_python(file: Path) -> None:
    """A fork that Python does not hear of: the child is refused the connection, and the parent goes on."""
    store = SqliteStore(file)
    store.hold(attempt("before"))
    if (child := ctypes.PyDLL(None).fork()) == 0:
        refused = False
        try:
            store.close()
            store.find("before")
        except StoreUnavailable as error:
            refused = "before a fork" in error.message
        finally:
            os._exit(0 if refused else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.hold(attempt("after"))
    store.close()
