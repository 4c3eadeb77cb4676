"""The service's log: one JSON object per line on stderr, for the service and its libraries.

    {"request_id":"req_01a1...","method":"POST","route":"/api/decide","status":200,"scope":"8f7f47779ccb4ee4",
     "latency_ms":4.812,"event":"request","level":"info","time":"2026-11-21T11:38:35.200Z"}

No line has a key, a secret, a body, a header's value (except a harmless `x-request-id`), or the message of an
unexpected exception, which could quote one of them. For the same reason, the log has the templates of routes.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import MutableMapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import BinaryIO, Final, TypeAlias

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from gate.ids import timestamp

Event: TypeAlias = MutableMapping[str, object]

LEVELS: Final = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class _Lines:
    """Writes lines, and never fails: a log on a full disk or a closed pipe must not undo an answer."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def msg(self, line: bytes) -> None:
        try:
            # In one piece, so that the lines of several processes do not mix.
            self._stream.write(line + b"\n")
            self._stream.flush()
        except (OSError, ValueError):
            return

    info = warning = error = msg


class _Log(structlog.BoundLoggerBase):
    """The class of structlog's own loggers, so that the line of each request can take a faster path."""

    _least: int
    """The level below which nothing is written."""

    def request(self, level: str, fields: Event) -> None:
        if LEVELS[level] >= self._least:
            fields["event"] = "request"
            self._logger.msg(_line(None, level, fields))


def open_log(level: str = "info", stream: BinaryIO | None = None) -> FilteringBoundLogger:
    """Opens a log that writes events of a level and above.

    Args:
        level: One of `LEVELS`.
        stream: The stream; None means stderr.
    """
    least = LEVELS[level]
    made = type("Log", (_Log, structlog.make_filtering_bound_logger(least)), {"_least": least})
    log: FilteringBoundLogger = made(_Lines(sys.stderr.buffer if stream is None else stream), [_line], {})
    return log


def log_request(log: FilteringBoundLogger, level: str, fields: dict[str, object]) -> None:
    """Logs an answered request as an event `request` with these fields.

    Args:
        log: Any log; a log of `open_log` is five times as fast.
        level: `info` or `error`.
        fields: The fields. The log may change the mapping.
    """
    if isinstance(log, _Log):
        log.request(level, fields)
    else:
        (log.error if level == "error" else log.info)("request", **fields)


def places(error: BaseException) -> list[str]:
    """The file, line, and function of each frame of an exception, without any value."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]


class LibraryFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats the lines that libraries write with Python's own logging in the same form."""

    def __init__(self) -> None:
        """Needs nothing; `library_logging` names it."""
        super().__init__(
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, _add_time],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _without_exception,
                lambda _, __, event: _render(event).decode(),
            ],
        )


class WithoutMessages(logging.Filter):
    """Replaces a library's message by the place that logs it, because the message may quote an address or a token."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        record.msg, record.args = f"{record.pathname}:{record.lineno}", ()
        return True


def library_logging(level: str = "warning", *, messages: bool = True) -> dict[str, object]:
    """The configuration of Python's logging, for `logging.config.dictConfig`.

    Args:
        level: The lowest level of libraries that is logged.
        messages: Whether to log their messages, or only the places that they come from.
    """
    stderr = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "json"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": f"{__name__}.LibraryFormatter"}},
        "filters": {"places": {"()": f"{__name__}.WithoutMessages"}},
        "handlers": {"stderr": stderr if messages else {**stderr, "filters": ["places"]}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {},
    }


def _line(_: object, level: str, event: Event) -> bytes:
    event["level"] = level
    event["time"] = _stamp(time.time_ns())
    return _render(event)


def _add_time(_: object, __: str, event: Event) -> Event:
    event["time"] = _stamp(time.time_ns())
    return event


def _stamp(nanoseconds: int) -> str:
    """The moment after a number of nanoseconds since 1970, as `timestamp` writes it."""
    second, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{_second(second)}{rest // 1_000_000:03}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    # Most lines are of the same second as the one before.
    return timestamp(datetime.fromtimestamp(second, UTC)).removesuffix("000Z")


def _render(event: Event) -> bytes:
    try:
        return orjson.dumps(event, default=_type_of)
    except TypeError:
        # It takes no half of a surrogate pair, and no integer of more than 64 bits.
        return json.dumps(event, default=_type_of, separators=(",", ":")).encode()


def _type_of(value: object) -> str:
    return type(value).__qualname__


def _without_exception(_: object, __: str, event: Event) -> Event:
    """Replaces an exception by its type and its places."""
    found: object = event.pop("exc_info", None)
    event.pop("exception", None)
    if isinstance(found, tuple) and found[1] is not None:
        event.update(error_type=type(found[1]).__qualname__, places=places(found[1]))
    return event
