"""Attacks of an adapter on what contains it, as data, and what becomes of each.

    python -m tests.gate.adapters.attacks       # both settings, as JSON, for whatever user runs it

Each attack comes in two styles. The plain one imports what it needs, which the import policy refuses, and goes on as if
nothing had happened. The other gets round the policy by introspection, by one of `ROUTES`, and then has the real
modules in its hands; what stops it is the operating system. It answers facts only where it got what it wanted, so that
facts are an escape; and `Grounds` sees from outside what it may have reached all the same.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gate.adapters.manifest import Adapter
from gate.adapters.worker import Workers
from gate.encoding.canonical import canonical
from gate.errors import AdapterFailed
from tests.gate.adapters.support import KIND, KIND_FACTS, KIND_GIVEN, adapter, facts, has_no_workers

DENIED: Final = "TRUSTED_ADAPTER_CAPABILITY_DENIED"
FAILED: Final = "TRUSTED_ADAPTER_EXECUTION_FAILED"
TIMEOUT: Final = "TRUSTED_ADAPTER_EXECUTION_TIMEOUT"
INVALID: Final = "TRUSTED_ADAPTER_OUTPUT_INVALID"

SECRET_NAME: Final = "GATE_ATTACKED_SECRET"
_SECRET: Final = "a-secret-that-no-adapter-is-told"

ROUTES: Final = {
    "import": """
        def reach():
            return __builtins__["__import__"].__globals__
    """,
    "frames": """
        def reach():
            try:
                raise ValueError
            except ValueError as error:
                frame = error.__traceback__.tb_frame
            while "Containment" not in frame.f_globals:
                frame = frame.f_back
            return frame.f_globals
    """,
    "subclasses": """
        def reach():
            for known in ().__class__.__base__.__subclasses__():
                if known.__name__ == "_Zygote":
                    return known.__init__.__globals__
    """,
    "generator": """
        def reach():
            def walk():
                frame = running.gi_frame
                while "Containment" not in frame.f_globals:
                    frame = frame.f_back
                yield frame.f_globals
            running = walk()
            return next(running)
    """,
    "module": """
        import typing
        def reach():
            frame = typing.sys._getframe()
            while "Containment" not in frame.f_globals:
                frame = frame.f_back
            return frame.f_globals
    """,
}
"""Ways from an adapter's code to the globals of the zygote's module."""

_REACHED: Final = """
{route}
def _names():
    found = reach()
    names = {{**found["Containment"].__init__.__globals__, **found}}
    return names

def facts(given):
    global os, socket, sys, signal, time, resource, select, ctypes, builtins, libc, call, zygote
    names = _names()
    os, socket, sys, signal, time = (names[name] for name in ("os", "socket", "sys", "signal", "time"))
    resource, select, ctypes, builtins = (names[name] for name in ("resource", "select", "ctypes", "builtins"))
    libc, zygote = ctypes.CDLL(None, use_errno=True), names
    libc.syscall.restype = ctypes.c_long

    def call(name, *arguments):
        wide = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
        found = libc.syscall(ctypes.c_long(given["calls"][name]), *wide)
        if found < 0:
            raise OSError(ctypes.get_errno(), name)
        return found

    return attack(given)

def attack(given):
{body}
"""

_IMPORTS: Final = {
    "goes on": """
        try:
            import {module}
        except ImportError:
            pass
        def facts(given):
            return {{"escaped": "it goes on without {module}"}}
    """,
    "imports": """
        def facts(given):
            import {module}
            return {{"escaped": "it imports {module}"}}
    """,
    "dynamic": """
        def facts(given):
            try:
                __import__("{module}")
            except BaseException:
                pass
            return {{"escaped": "it goes on without {module}"}}
    """,
}

# Of each architecture's unistd.h: those that attacks make without a function of the C library.
_CALLS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "read": 0, "mmap": 9, "mprotect": 10, "socket": 41, "clone": 56, "execve": 59, "kill": 62, "ptrace": 101,
        "openat": 257, "gettimeofday": 96, "times": 100, "setsid": 112, "prctl": 157, "unshare": 272, "tgkill": 234,
        "process_vm_readv": 310, "process_vm_writev": 311, "getrandom": 318, "memfd_create": 319, "execveat": 322,
        "userfaultfd": 323, "bpf": 321, "perf_event_open": 298, "pidfd_send_signal": 424, "io_uring_setup": 425,
        "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "seccomp": 317, "shmget": 29, "personality": 135,
        "pkey_mprotect": 329, "setrlimit": 160,
    },
    "aarch64": {
        "read": 63, "mmap": 222, "mprotect": 226, "socket": 198, "clone": 220, "execve": 221, "kill": 129,
        "ptrace": 117, "openat": 56, "gettimeofday": 169, "times": 153, "setsid": 157, "prctl": 167, "unshare": 97,
        "tgkill": 131, "process_vm_readv": 270, "process_vm_writev": 271, "getrandom": 278, "memfd_create": 279,
        "execveat": 281, "userfaultfd": 282, "bpf": 280, "perf_event_open": 241, "pidfd_send_signal": 424,
        "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "seccomp": 277, "shmget": 194,
        "personality": 92, "pkey_mprotect": 288, "setrlimit": 164,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """One kind of attack.

    Attributes:
        name: What it goes for.
        imports: The modules that the plain style imports for it.
        bodies: What the other style does, as the body of a function of `given`, by what it is called.
        codes: With which codes a call of the other style may end.
        timeout_ms: How long a call may take.
    """

    name: str
    bodies: dict[str, str]
    imports: tuple[str, ...] = ()
    codes: tuple[str, ...] = (DENIED,)
    timeout_ms: int = 20_000


@dataclass(frozen=True)
class Variant:
    """One way of one attack: an adapter, and with which codes its call may end."""

    attack: str
    name: str
    called: Adapter
    codes: tuple[str, ...]


@dataclass
class Outcome:
    """What became of one variant.

    Attributes:
        attack: Its attack.
        variant: Its name.
        code: The code of the failure; None where the call made facts.
        message: The failure's sentence, or the beginning of the facts.
        expected: Whether it ended as it should.
        escapes: What it got, or what was seen of it outside.
        well_after: Whether the same workers answered a well-behaved adapter afterwards.
    """

    attack: str
    variant: str
    code: str | None
    message: str
    expected: bool
    escapes: list[str]
    well_after: bool


ATTACKS: Final = (
    Attack(
        "TCP sockets",
        {
            "connects": 's = socket.create_connection(("127.0.0.1", given["tcp"]))\ns.send(b"x")\nreturn {"sent": 1}',
            "connects by number": 's = socket.socket()\ns.connect(("127.0.0.1", given["tcp"]))\nreturn {"sent": 1}',
            "listens": 's = socket.create_server(("127.0.0.1", 0))\nreturn {"port": s.getsockname()[1]}',
            "IPv6": 'return {"made": socket.socket(socket.AF_INET6).fileno()}',
            "C library": 'fd = libc.socket(2, 1, 0)\nif fd < 0:\n    raise OSError\nreturn {"made": fd}',
            "system call": 'return {"made": call("socket", 2, 1, 0)}',
        },
        ("socket", "_socket", "asyncio", "http.client", "urllib.request"),
    ),
    Attack(
        "UDP sockets",
        {
            "sends": "s = socket.socket(type=socket.SOCK_DGRAM)\n"
            'return {"sent": s.sendto(b"x", ("127.0.0.1", given["udp"]))}',
            "binds": 's = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(("", 0))\nreturn {"port": s.getsockname()[1]}',
            "C library": 'fd = libc.socket(2, 2, 0)\nif fd < 0:\n    raise OSError\nreturn {"made": fd}',
            "system call": 'return {"made": call("socket", 2, 2, 17)}',
        },
        ("socket", "socketserver", "logging.handlers"),
    ),
    Attack(
        "UNIX sockets",
        {
            "connects": 's = socket.socket(socket.AF_UNIX)\ns.connect(given["unix"])\nreturn {"sent": s.send(b"x")}',
            "abstract": 's = socket.socket(socket.AF_UNIX)\ns.connect("\\0" + given["abstract"])\nreturn {"sent": 1}',
            "pair": 'return {"made": [s.fileno() for s in socket.socketpair()]}',
            "datagram": 'return {"made": socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).fileno()}',
            "descriptor that was the control socket's": "found = []\nfor fd in range(256):\n    if fd != 3:\n"
            '        found.append(os.read(fd, 1).hex())\nreturn {"found": found}',
        },
        ("socket", "multiprocessing.connection", "_multiprocessing"),
    ),
    Attack(
        "raw sockets",
        {
            "ICMP": 'return {"made": socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno()}',
            "packet": 'return {"made": socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768).fileno()}',
            "netlink": 'return {"made": socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).fileno()}',
            "vsock": 'return {"made": call("socket", 40, 1, 0)}',
        },
        ("socket", "_socket"),
    ),
    Attack(
        "DNS",
        {
            "getaddrinfo": 'return {"found": str(socket.getaddrinfo("localhost", 80))}',
            "gethostbyname": 'return {"found": socket.gethostbyname("localhost")}',
            "reverse": 'return {"found": socket.gethostbyaddr("127.0.0.1")[0]}',
            "hostname": 'return {"found": socket.gethostname()}',
            "C library": 'libc.gethostbyname.restype = ctypes.c_void_p\nfound = libc.gethostbyname(b"localhost")\n'
            'if not found:\n    raise OSError\nreturn {"found": found}',
            "query": 's = socket.socket(type=socket.SOCK_DGRAM)\nreturn {"sent": s.sendto(b"q", ("127.0.0.53", 53))}',
        },
        ("socket", "asyncio", "platform"),
    ),
    Attack(
        "file read",
        {
            "open": 'return {"read": builtins.open(given["secret"]).read()}',
            "os.open": 'return {"read": os.read(os.open(given["secret"], os.O_RDONLY), 99).decode()}',
            "loader": 'return {"read": names()["__loader__"].get_data(given["secret"]).decode()}'.replace(
                "names()", "zygote"
            ),
            "folder": 'return {"read": os.listdir("/")}',
            "stat": 'return {"read": os.stat(given["secret"]).st_size}',
            "C library": 'fd = libc.open(given["secret"].encode(), 0)\nif fd < 0:\n    raise OSError\n'
            'return {"made": fd}',
            "system call": 'return {"made": call("openat", -100, ctypes.c_char_p(given["secret"].encode()), 0)}',
            "import": 'import_ = builtins.__import__\nreturn {"read": import_("this").__file__}',
            "map": 'return {"at": call("mmap", 0, 4096, 1, 2, 3, 0)}',
        },
        ("os", "io", "pathlib", "posix", "shutil", "linecache"),
    ),
    Attack(
        "file write",
        {
            "open": 'builtins.open(given["new"], "w").write("x")\nreturn {"wrote": 1}',
            "os.open": 'return {"made": os.open(given["new"], os.O_CREAT | os.O_WRONLY)}',
            "folder": 'os.mkdir(given["new"])\nreturn {"made": 1}',
            "link": 'os.symlink(given["secret"], given["new"])\nreturn {"made": 1}',
            "removes": 'os.unlink(given["secret"])\nreturn {"removed": 1}',
            "writes to descriptors": 'return {"wrote": [os.write(fd, b"x") for fd in (0, 1, 2, 4, 5, 6, 7, 8)]}',
            "memory file": 'return {"made": call("memfd_create", ctypes.c_char_p(b"x"), 0)}',
        },
        ("os", "io", "tempfile", "sqlite3", "dbm"),
    ),
    Attack(
        "environment",
        {
            "os.environ": 'return {"found": os.environ[given["name"]]}',
            "its store": 'return {"found": os.environ._data[given["name"].encode()].decode()}',
            "C library": "libc.getenv.restype = ctypes.c_char_p\n"
            'return {"found": libc.getenv(given["name"].encode()).decode()}',
            "stack": 'at = ctypes.c_void_p.in_dll(libc, "__libc_stack_end").value\nheld = b""\n'
            'while held.find(given["name"].encode()) < 0 or len(held) - held.find(given["name"].encode()) < 53:\n'
            '    held += ctypes.string_at(at + len(held), 8)\nreturn {"found": held[-60:].decode("latin-1")}',
            "/proc": 'return {"found": builtins.open("/proc/self/environ").read()}',
        },
        ("os", "posix", "sysconfig"),
        (DENIED, FAILED),
    ),
    Attack(
        "the parent's memory and /proc",
        {
            "/proc mem": 'return {"fd": os.open("/proc/%d/mem" % given["parent"], os.O_RDWR)}',
            "/proc environ": 'return {"read": builtins.open("/proc/%d/environ" % given["parent"]).read()}',
            "/proc folder": 'return {"read": os.listdir("/proc")}',
            "process_vm_readv": "held = ctypes.create_string_buffer(64)\n"
            "here = (ctypes.c_void_p * 2)(ctypes.addressof(held), 64)\n"
            'there = (ctypes.c_void_p * 2)(given["buffer"], 32)\n'
            'call("process_vm_readv", given["parent"], here, 1, there, 1, 0)\nreturn {"read": held.value.decode()}',
            "process_vm_writev": 'held = ctypes.create_string_buffer(b"overwritten by an adapter", 64)\n'
            "here = (ctypes.c_void_p * 2)(ctypes.addressof(held), 20)\n"
            'there = (ctypes.c_void_p * 2)(given["buffer"], 20)\n'
            'return {"wrote": call("process_vm_writev", given["parent"], here, 1, there, 1, 0)}',
            "pidfd": 'return {"fd": call("pidfd_getfd", call("pidfd_open", given["parent"], 0), 0, 0)}',
            "parent's id": 'return {"found": os.getppid()}',
        },
        ("os", "mmap", "resource", "gc"),
    ),
    Attack(
        "ptrace",
        {
            "seizes the parent": 'return {"seized": call("ptrace", 0x4206, given["victim"], 0, 0)}',
            "seizes the zygote": 'return {"seized": call("ptrace", 0x4206, zygote["os"].getppid(), 0, 0)}',
            "seizes process 1": 'return {"seized": call("ptrace", 0x4206, 1, 0, 0)}',
            "asks to be traced": 'return {"traced": call("ptrace", 0, 0, 0, 0)}',
            "C library": 'return {"seized": libc.ptrace(0x4206, given["victim"], None, None)}',
        },
        ("ctypes", "_ctypes"),
    ),
    Attack(
        "fork bomb",
        {
            "fork": 'for _ in range(32):\n    if os.fork() == 0:\n        os._exit(0)\nreturn {"forked": 32}',
            "fork that goes on after each refusal": "for _ in range(32):\n    try:\n        os.fork()\n"
            '    except BaseException:\n        pass\nreturn {"forked": 32}',
            "forkpty": 'return {"forked": os.forkpty()[0]}',
            "clone": 'return {"forked": call("clone", 17, 0, 0, 0, 0)}',
            "clone3": 'return {"forked": call("clone3", ctypes.create_string_buffer(64), 64)}',
            "threads": 'thread = builtins.__import__("_thread")\n'
            'return {"made": [thread.start_new_thread(len, ("",)) for _ in range(32)]}',
        },
        ("os", "multiprocessing", "threading", "concurrent.futures", "_thread", "_posixsubprocess"),
    ),
    Attack(
        "exec",
        {
            "execv": 'os.execv("/bin/sh", ["sh", "-c", "echo x > " + given["new"]])',
            "spawn": 'os.posix_spawn("/bin/sh", ["sh", "-c", "echo x > " + given["new"]], {})\nreturn {"spawned": 1}',
            "system": 'if os.system("echo x > " + given["new"]):\n    raise OSError\nreturn {"ran": 1}',
            "C library": 'if libc.system(b"echo x > " + given["new"].encode()):\n    raise OSError\nreturn {"ran": 1}',
            "execve": 'text = ctypes.c_char_p(b"/bin/true")\nreturn {"ran": call("execve", text, None, None)}',
            "execveat": 'text = ctypes.c_char_p(b"/bin/true")\n'
            'return {"ran": call("execveat", -100, text, None, None, 0)}',
        },
        ("subprocess", "os", "pty", "webbrowser", "_posixsubprocess"),
    ),
    Attack(
        "4 GB of memory",
        {
            "at once": 'return {"held": len(bytearray(4 << 30))}',
            "in pieces": 'return {"held": len([bytearray(1 << 20) for _ in range(4096)])}',
            "list": 'return {"held": len([None] * (1 << 29))}',
            "text": 'return {"held": len("x" * (4 << 30))}',
            "number": 'return {"held": (1 << (1 << 35)).bit_length()}',
            "map": 'at = call("mmap", 0, 4 << 30, 3, 0x22, -1, 0)\nreturn {"at": at}',
            "map without reserve": 'at = call("mmap", 0, 4 << 30, 0, 0x4022, -1, 0)\nreturn {"at": at}',
            "shared map": 'at = call("mmap", 0, 4 << 30, 3, 0x21, -1, 0)\nreturn {"at": at}',
            "raised limit": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n"
            'return {"held": len(bytearray(4 << 30))}',
            "poisoned page": "libc.madvise.restype = ctypes.c_int\n"
            "found = libc.madvise(ctypes.c_void_p(4096), ctypes.c_size_t(4096), 100)\n"
            # EFAULT is said after it was looked whether this process may do it.
            "if ctypes.get_errno() != 14:\n    raise OSError\nreturn {'may': found}",
        },
        ("mmap", "resource", "array", "multiprocessing.shared_memory"),
        (DENIED, FAILED),
    ),
    Attack(
        "endless loop",
        {
            "loop": "while True:\n    pass",
            "loop that swallows all": "while True:\n    try:\n        raise KeyboardInterrupt\n"
            "    except BaseException:\n        continue",
            "expression": 'import re\nreturn {"found": bool(re.match("(a+)+$", "a" * 64 + "b"))}',
            "one function": 'import itertools\nreturn {"sum": sum(itertools.repeat(1))}',
            "one number": 'return {"digits": (3 ** (10 ** 8)).bit_length()}',
            "at its exit": "class Late:\n    def __del__(self):\n        while True:\n            pass\nLate()",
        },
        ("time", "sched", "signal", "asyncio"),
        (TIMEOUT,),
        100,
    ),
    Attack(
        "1 GB of output",
        {
            "one text": 'return {"text": "x" * (1 << 30)}',
            "many texts": 'return {"texts": ["x" * 1024] * (1 << 20)}',
            "the same again and again": 'held = ["x" * 1024]\nfor _ in range(20):\n    held = [held, held]\n'
            'return {"held": held}',
            "written": 'for _ in range(1 << 14):\n    os.write(3, b"x" * 65536)\nos._exit(0)',
            "one byte too many": 'return {"text": "x" * (64 * 1024 - len(\'{"text":""}\') + 1)}',
            "error": 'raise type("A" * (1 << 22), (Exception,), {})',
        },
        ("os", "io", "sys"),
        (INVALID, FAILED),
    ),
    Attack(
        "deep recursion",
        {
            "calls": "return attack(given)",
            "calls with a raised limit": "sys.setrecursionlimit(1 << 30)\nreturn attack(given)",
            "nested facts": 'held = []\nfor _ in range(100_000):\n    held = [held]\nreturn {"held": held}',
            "facts in a circle": 'held = []\nheld.append(held)\nreturn {"held": held}',
            "nested facts with a raised limit": "sys.setrecursionlimit(1 << 30)\nheld = []\n"
            'for _ in range(1_000_000):\n    held = [held]\nreturn {"held": held}',
            "nested expression": 'import re\nreturn {"found": bool(re.compile("(" * 50_000 + ")" * 50_000))}',
            "nested source": 'return {"found": builtins.eval("(" * 50_000 + ")" * 50_000)}',
            "repr": "sys.setrecursionlimit(1 << 30)\nheld = []\nfor _ in range(1_000_000):\n    held = [held]\n"
            'return {"text": repr(held)}',
        },
        ("sys", "ast", "threading"),
        (FAILED, INVALID),
    ),
    Attack(
        "orphan child",
        {
            "double fork": "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True:\n"
            '            pass\n    os._exit(0)\nreturn {"left": 1}',
            "session": 'return {"session": call("setsid")}',
            "daemon": 'return {"left": libc.daemon(0, 0)}',
            "outlives the zygote": 'return {"set": call("prctl", 1, 0, 0, 0, 0)}',
            "group": 'os.setpgid(0, 0)\nreturn {"set": 1}',
        },
        ("os", "subprocess", "multiprocessing"),
    ),
    Attack(
        "signals",
        {
            "zygote": 'os.kill(zygote["os"].getppid(), 0)\nreturn {"may": 1}',
            "process 1": 'os.kill(1, 0)\nreturn {"may": 1}',
            "all": 'os.kill(-1, 0)\nreturn {"may": 1}',
            "another": 'os.kill(given["victim"], 9)\nreturn {"killed": 1}',
            "another by system call": 'return {"killed": call("kill", given["victim"], 9)}',
            "thread of another": 'return {"killed": call("tgkill", given["victim"], given["victim"], 9)}',
            "pidfd": 'return {"killed": call("pidfd_send_signal", call("pidfd_open", given["victim"], 0), 9, 0, 0)}',
            "itself": 'signal.raise_signal(signal.SIGSTOP)\nreturn {"went": "on"}',
            "alarm": 'signal.alarm(1)\nreturn {"set": 1}',
            "handler": 'signal.signal(signal.SIGTERM, signal.SIG_IGN)\nreturn {"set": 1}',
        },
        ("signal", "os", "_signal", "faulthandler"),
    ),
    Attack(
        "clock",
        {
            "time": 'return {"time": time.time()}',
            "monotonic": 'return {"time": time.monotonic()}',
            "processor": 'return {"time": time.process_time_ns()}',
            "any clock": "for number in range(12):\n    try:\n        found = time.clock_gettime_ns(number)\n"
            '    except OSError:\n        continue\n    if found:\n        return {"time": found}\nraise LookupError',
            "gettimeofday": "held = ctypes.create_string_buffer(16)\nlibc.gettimeofday(held, None)\n"
            'if not any(held.raw):\n    raise LookupError\nreturn {"time": held.raw.hex()}',
            "C library": 'found = libc.time(None)\nif found in (0, -1):\n    raise LookupError\nreturn {"time": found}',
            "system call": 'return {"time": call("gettimeofday", ctypes.create_string_buffer(16), None)}',
            "times": 'return {"time": os.times().elapsed}',
            "usage": 'return {"time": resource.getrusage(resource.RUSAGE_SELF).ru_utime}',
            "sleep": 'time.sleep(0.01)\nreturn {"slept": 1}',
            "wait": 'select.select([], [], [], 0.01)\nreturn {"slept": 1}',
            "legacy page": "asked = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(0xFFFFFFFFFF600400)\n"
            'return {"time": asked(None)}',
            "counter": "at = ctypes.cast(libc.getpid, ctypes.c_void_p).value & ~0xFFFF\n"
            "text = ctypes.string_at(at, 0x10000)\n"
            # rdtsc, wherever it stands; what follows it is of no account, for it must not get there.
            "while (found := text.find(bytes((0x0F, 0x31)))) < 0:\n    at += 0x10000\n"
            "    text = ctypes.string_at(at, 0x10000)\n"
            'return {"time": ctypes.CFUNCTYPE(ctypes.c_long)(at + found)()}',
            "what the zygote knew": "frame = sys._getframe()\nfound = []\nwhile frame is not None:\n"
            "    found += [it for it in frame.f_locals.values() if isinstance(it, float)]\n    frame = frame.f_back\n"
            'near = [it for it in found if min(abs(it - known) for known in given["now"]) < 600]\n'
            'if not near:\n    raise LookupError\nreturn {"time": near}',
        },
        ("time", "datetime", "_datetime", "calendar", "timeit", "email.utils"),
        (DENIED, FAILED),
    ),
    Attack(
        "randomness",
        {
            "os.urandom": 'return {"drawn": os.urandom(8).hex()}',
            "os.getrandom": 'return {"drawn": os.getrandom(8).hex()}',
            "module": 'return {"drawn": builtins.__import__("random").random()}',
            "C module": 'return {"drawn": builtins.__import__("_random").Random().random()}',
            "device": 'return {"drawn": builtins.open("/dev/urandom", "rb").read(8).hex()}',
            "C library": 'libc.arc4random.restype = ctypes.c_uint\nreturn {"drawn": libc.arc4random()}',
            "getentropy": "held = ctypes.create_string_buffer(8)\nif libc.getentropy(held, 8):\n    raise OSError\n"
            'return {"drawn": held.raw.hex()}',
            "system call": 'held = ctypes.create_string_buffer(8)\ncall("getrandom", held, 8, 0)\n'
            'return {"drawn": held.raw.hex()}',
        },
        ("random", "secrets", "uuid", "_random", "tempfile"),
        (DENIED, FAILED),
    ),
    Attack(
        "ctypes",
        {
            "executable memory": 'return {"at": call("mmap", 0, 4096, 7, 0x22, -1, 0)}',
            "executable alone": 'return {"at": call("mmap", 0, 4096, 4, 0x22, -1, 0)}',
            "made executable": 'at = call("mmap", 0, 4096, 3, 0x22, -1, 0)\n'
            'return {"made": call("mprotect", at, 4096, 5)}',
            "made executable by a key": 'at = call("mmap", 0, 4096, 3, 0x22, -1, 0)\n'
            'return {"made": call("pkey_mprotect", at, 4096, 5, -1)}',
            "patched code": "at = ctypes.cast(libc.getpid, ctypes.c_void_p).value & ~0xFFF\n"
            'call("mprotect", at, 4096, 3)\nctypes.memset(at, 0, 16)\nreturn {"made": call("mprotect", at, 4096, 5)}',
            "callback": 'made = ctypes.CFUNCTYPE(None)(lambda: None)\nmade()\nreturn {"called": 1}',
            "library": 'return {"loaded": ctypes.CDLL("libresolv.so.2")._name}',
            "io_uring": 'return {"made": call("io_uring_setup", 8, ctypes.create_string_buffer(256))}',
            "userfaultfd": 'return {"made": call("userfaultfd", 1)}',
            "bpf": 'return {"made": call("bpf", 0, ctypes.create_string_buffer(64), 64)}',
            "perf": 'return {"made": call("perf_event_open", ctypes.create_string_buffer(128), 0, -1, -1, 0)}',
            "namespace": 'return {"made": call("unshare", 0x10000000)}',
            "another filter": 'return {"set": call("seccomp", 0, 0, None)}',
            "personality": 'return {"set": call("personality", 0x0400000)}',
            "shared memory": 'return {"made": call("shmget", 0x6761, 4096, 0o1666)}',
            "other numbers": 'return {"found": libc.syscall(ctypes.c_long(0x40000000 + 39))}',
        },
        ("ctypes", "_ctypes", "cffi", "mmap"),
    ),
)
"""Every attack."""


def variants() -> list[Variant]:
    """Every variant of every attack; those that get round the policy take each of the routes in turn."""
    made: list[Variant] = []

    def add(attack: Attack, name: str, source: str, codes: tuple[str, ...]) -> None:
        called = adapter(f"attack_{len(made)}", source, timeout_ms=attack.timeout_ms)
        made.append(Variant(attack.name, name, called, codes))

    for attack in ATTACKS:
        for number, module in enumerate(attack.imports):
            style = list(_IMPORTS)[number % len(_IMPORTS)]
            source = textwrap.dedent(_IMPORTS[style]).format(module=module)
            add(attack, f"import of {module}, which {style}", source, (DENIED,))
        for number, (name, body) in enumerate(attack.bodies.items()):
            route = list(ROUTES)[number % len(ROUTES)]
            add(attack, f"{name}, by {route}", reached(route, body), attack.codes)
    return made


def reached(route: str, body: str) -> str:
    """The source of an adapter that has got the real modules, and then does what stands in `body`."""
    return _REACHED.format(route=textwrap.dedent(ROUTES[route]), body=textwrap.indent(body, "    "))


@dataclass
class Grounds:
    """What attacks may go for, on this side: sockets that listen, files, memory and a process.

    Attributes:
        given: What an attack is told of all that.
    """

    folder: Path
    given: dict[str, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._open = ExitStack()
        # Where another user looks, too: it is no permission of files that is to stop an adapter.
        self.folder.chmod(0o777)
        self._secret = self.folder / "secret"
        self._secret.write_text(_SECRET)
        self._secret.chmod(0o666)
        self._buffer = ctypes.create_string_buffer(_SECRET.encode(), 64)
        self._tcp = self._listens(socket.AF_INET, ("127.0.0.1", 0))
        self._unix = self._listens(socket.AF_UNIX, str(self.folder / "unix"))
        abstract = f"gate-attacked-{os.getpid()}-{time.monotonic_ns()}"
        self._abstract = self._listens(socket.AF_UNIX, f"\0{abstract}")
        self._udp = self._open.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        self._udp.bind(("127.0.0.1", 0))
        self._udp.setblocking(False)
        self._victim = self._open.enter_context(
            subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        )
        self._open.callback(self._victim.kill)
        self._before = set(self.folder.iterdir())
        self.given = {
            "tcp": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "unix": str(self.folder / "unix"),
            "abstract": abstract,
            "secret": str(self._secret),
            "new": str(self.folder / "new"),
            "name": SECRET_NAME,
            "parent": os.getpid(),
            "victim": self._victim.pid,
            "buffer": ctypes.addressof(self._buffer),
            "calls": _CALLS[platform.machine()],
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def _listens(self, family: int, address: Any) -> socket.socket:
        made = self._open.enter_context(socket.socket(family))
        made.bind(address)
        made.listen()
        made.setblocking(False)
        return made

    def asked(self) -> bytes:
        """What an attack is told, with what the clocks say now."""
        now = [int(time.time()), int(time.monotonic()), int(time.clock_gettime(time.CLOCK_BOOTTIME))]
        return canonical({**self.given, "now": now})

    def traces(self) -> list[str]:
        """What of an attack is seen here."""
        found = []
        for name, listening in (("TCP", self._tcp), ("UNIX", self._unix), ("abstract", self._abstract)):
            if _connected(listening):
                found.append(f"a {name} connection")
        if _does(lambda: self._udp.recv(99)):
            found.append("a datagram")
        if set(self.folder.iterdir()) != self._before:
            found.append("a file that is new or gone")
        if self._secret.exists() and self._secret.read_text() != _SECRET:
            found.append("a file that was changed")
        if self._buffer.value != _SECRET.encode():
            found.append("memory of this process that was changed")
        if self._victim.poll() is not None:
            found.append("a process that was ended")
        return found


@contextmanager
def field_of(every: Sequence[Variant], *, beyond_baseline: bool) -> Iterator[Callable[[Variant], Outcome]]:
    """What attacks with one variant after the other, on the same workers."""
    kind = adapter("kind", KIND)
    before = os.environ.get(SECRET_NAME)
    os.environ[SECRET_NAME] = _SECRET
    workers = Workers([kind, *(variant.called for variant in every)], beyond_baseline=beyond_baseline)
    with tempfile.TemporaryDirectory() as folder, Grounds(Path(folder)) as grounds:
        try:
            yield lambda variant: _attacked(workers, kind, variant, grounds)
        finally:
            workers.close()
            if before is None:
                del os.environ[SECRET_NAME]
            else:
                os.environ[SECRET_NAME] = before


def _attacked(workers: Workers, kind: Adapter, variant: Variant, grounds: Grounds) -> Outcome:
    escapes = []
    code = None
    zygote = workers.process_id()
    try:
        message = workers.run(variant.called, grounds.asked())[:200].decode("utf-8", "replace")
        escapes.append(f"facts: {message}")
    except AdapterFailed as failure:
        code, message = failure.code, failure.message
    if _SECRET in message:
        escapes.append("a secret in what it answers")
    if not has_no_workers(workers):
        escapes.append("a process that is left")
    if zygote is not None and workers.process_id() != zygote:
        escapes.append("an end of the zygote")
    escapes += grounds.traces()
    return Outcome(
        attack=variant.attack,
        variant=variant.name,
        code=code,
        message=message,
        expected=code in variant.codes,
        escapes=escapes,
        well_after=facts(workers, kind, KIND_GIVEN) == KIND_FACTS,
    )


def _connected(listening: socket.socket) -> bool:
    return _does(lambda: listening.accept()[0].close())


def _does(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except BlockingIOError:
        return False
    return True


def main() -> None:
    """Prints what becomes of every attack, in both settings; with `shared`, of every other variant in each."""
    shared = sys.argv[1:] == ["shared"]
    settings = []
    for number, beyond_baseline in enumerate((True, False)):
        every = variants()[number::2] if shared else variants()
        measures = Workers([adapter("kind", KIND)], beyond_baseline=beyond_baseline)
        in_force = measures.measures()
        measures.close()
        with field_of(every, beyond_baseline=beyond_baseline) as attack:
            outcomes = [vars(attack(variant)) for variant in every] if in_force.reason is None else []
        settings.append(
            {
                "beyond_baseline": beyond_baseline,
                "in_force": in_force.in_force,
                "reason": in_force.reason,
                "outcomes": outcomes,
            }
        )
    json.dump({"user": os.geteuid(), "settings": settings}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
