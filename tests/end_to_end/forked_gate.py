"""Stands for the `gate` command where tests.end_to_end.forking forks it: forked_gate.py SOCKET INSTALLED ARGUMENT..."""

from __future__ import annotations

import json
import os
import socket
import sys


def _main() -> None:
    address, installed, *arguments = sys.argv[1:]
    if arguments[:1] in (["serve"], ["workbench"]):
        os.execv(installed, [installed, *arguments])  # noqa: S606 - the command itself
    umask = os.umask(0)
    os.umask(umask)
    asked = {
        "folder": os.getcwd(),  # noqa: PTH109 - pathlib takes as long to load as all else
        "umask": umask,
        "environment": dict(os.environ),
        "arguments": arguments,
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [json.dumps(asked).encode()], [0, 1, 2])
        code = int(connection.recv(16))
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


_main()
