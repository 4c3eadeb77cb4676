"""How sources write times, and the moments they mean; a time that could mean two is refused.

    TimeFormat("iso8601", "Europe/Lisbon")     2024-06-30T12:00:00Z, 2024-06-30 13:00+01:00, 2024-06-30 13:00
    TimeFormat("%d.%m.%Y", "UTC")              30.06.2024

A pattern says the order of day and month, so that nothing is guessed. A time without a zone is in the map's zone; one
that the clock there showed twice, or never, is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final
from zoneinfo import ZoneInfo

import polars as pl

from workbench.columns import TIME

_DIRECTIVES: Final = {
    "Y": r"(?<y>[0-9]{4})",
    "m": r"(?<m>[0-9]{1,2})",
    "d": r"(?<d>[0-9]{1,2})",
    "H": r"(?<H>[0-9]{1,2})",
    "M": r"(?<M>[0-9]{2})",
    "S": r"(?<S>[0-9]{2})",
    "f": r"(?<f>[0-9]{1,9})",
    "z": r"(?<z>Z|[+-][0-9]{2}(?::?[0-9]{2})?)",
    "%": "%",
}
_NAMED: Final = {
    "iso8601": (
        r"(?<y>[0-9]{4})-(?<m>[0-9]{2})-(?<d>[0-9]{2})[T ](?<H>[0-9]{2}):(?<M>[0-9]{2})"
        r"(?::(?<S>[0-9]{2})(?:[.,](?<f>[0-9]{1,9}))?)?(?<z>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
    ),
    "date": r"(?<y>[0-9]{4})-(?<m>[0-9]{2})-(?<d>[0-9]{2})",
}
TYPED: Final = "typed"
"""The format of cells that their file has as dates or times, as `row_sources` writes these as texts."""
_TYPED: Final = f"{_NAMED['date']}(?:{_NAMED['iso8601'].removeprefix(_NAMED['date'])})?"
_UNIX: Final = {"unix_seconds": (r"^-?[0-9]{1,11}$", 1000), "unix_milliseconds": (r"^-?[0-9]{1,14}$", 1)}
_EXAMPLES: Final = {
    "iso8601": "2024-06-30T12:00:00Z",
    "date": "2024-06-30",
    "unix_seconds": "1719748800",
    "unix_milliseconds": "1719748800000",
}
_WRITTEN: Final = {"Y": "2024", "m": "06", "d": "30", "H": "12", "M": "00", "S": "00", "f": "000", "z": "Z", "%": "%"}
_DIRECTIVE: Final = re.compile(r"%(.)", re.DOTALL)
_PATTERN: Final = re.compile(r"%(.?)|([^%])", re.DOTALL)
_PLAIN: Final = re.compile(r"[A-Za-z0-9 .,:/_-]", re.ASCII)
_PARTS: Final = "ymdHMSfz"
_MINUTE: Final = 60_000
_NONE_SUCH: Final = "There is no such day or time in the years 1 to 9999."
# The years 1 to 9999, as the protocol has them, in milliseconds since 1970.
_FIRST: Final = -62_135_596_800_000
_LAST: Final = 253_402_300_799_999


@dataclass(frozen=True)
class TimeFormat:
    """The format of times in a column.

    Attributes:
        format: `iso8601`, `date`, `unix_seconds`, `unix_milliseconds`, or a pattern.
        zone: The time zone of times without one.
    """

    format: str
    zone: str

    @property
    def is_day(self) -> bool:
        """Whether the format has no time of day."""
        return self.format == "date" or ("%" in self.format and "%H" not in self.format)

    def faults(self, cells: pl.Series) -> pl.Series:
        """The reason why each cell is refused, as a sentence; null for a null cell.

        Args:
            cells: Texts that `read` does not accept as a time.
        """
        example = _EXAMPLES.get(self.format) or _DIRECTIVE.sub(lambda of: _WRITTEN[of[1]], self.format)
        unfit = pl.lit(f"It does not match the format {self.format}, for example {example}.")
        if self.format == TYPED:
            # Whatever does not fit has another year.
            unfit = pl.lit(_NONE_SUCH)
        if self.format in _UNIX:
            parts, fits, fault = cells.to_frame(), pl.first().str.contains(_UNIX[self.format][0]), pl.lit(_NONE_SUCH)
        else:
            parts, fits, fault = self._parts(cells), pl.col("y").is_not_null(), self._fault()
        why = pl.when(fits).then(fault).otherwise(unfit)
        return parts.select(pl.when(cells.is_not_null()).then(why).alias(cells.name)).to_series()

    def _fault(self) -> pl.Expr:
        """What is wrong with times that fit the format."""
        advice = {"iso8601": " Write it with its offset from UTC, such as +01:00."}.get(self.format, "")
        if "%" in self.format:
            advice = " Write times with their offset from UTC, and give the format %z."
        zoned = partial(pl.col("naive").dt.replace_time_zone, self.zone, non_existent="null")
        return (
            pl.when(pl.col("naive").is_null() | pl.col("z").is_not_null() | zoned(ambiguous="null").is_not_null())
            .then(pl.lit(_NONE_SUCH))
            .when(zoned(ambiguous="earliest").is_null())
            .then(pl.lit(f"The clock in {self.zone} skipped this time. Correct it, or the time zone in the map."))
            .otherwise(pl.lit(f"The clock in {self.zone} showed this time twice.{advice}"))
        )

    @cached_property
    def _regex(self) -> str:
        known = {**_NAMED, TYPED: _TYPED}
        return f"^{known.get(self.format) or _translated(self.format)}$"

    def read(self, cells: pl.Expr) -> pl.Expr:
        """The moments of a column of texts; null where a cell is none of them."""
        if self.format in _UNIX:
            regex, each = _UNIX[self.format]
            number = pl.when(cells.str.contains(regex)).then(cells).cast(pl.Int64, strict=False) * each
            return pl.when(number.is_between(_FIRST, _LAST)).then(number).cast(TIME)
        # As expressions, the groups would be matched again for each part of them.
        return cells.map_batches(self._moments, TIME, is_elementwise=True)

    def _parts(self, cells: pl.Series) -> pl.DataFrame:
        """The parts of each time, and `naive`, the time by its own clock; null where there is no such time."""
        parts = pl.select(cells.str.extract_groups(self._regex)).to_series().struct.unnest()
        missing = [pl.lit(None, pl.String).alias(name) for name in _PARTS if name not in parts.columns]
        parts = parts.with_columns(missing).with_columns(
            pl.concat_str(pl.col("y"), pl.col("m").str.zfill(2), pl.col("d").str.zfill(2), separator="-")
            .str.to_date("%Y-%m-%d", strict=False)
            .alias("day"),
            *(pl.col(name).cast(pl.Int64, strict=False).fill_null(0) for name in "HMS"),
            pl.col("f").str.pad_end(3, "0").str.slice(0, 3).cast(pl.Int64, strict=False).fill_null(0),
        )
        hour, minute, second = (pl.col(name) for name in "HMS")
        milliseconds = ((hour * 60 + minute) * 60 + second) * 1000 + pl.col("f")
        # The leap second has no place on the clock of the protocol.
        whole = (hour < 24) & (minute < 60) & (second < 60)
        naive = pl.when(whole).then(pl.col("day").cast(pl.Datetime("ms")) + milliseconds.cast(pl.Duration("ms")))
        return parts.with_columns(naive.alias("naive"))

    def _moments(self, cells: pl.Series) -> pl.Series:
        parts, naive, zone = self._parts(cells), pl.col("naive"), pl.col("z")
        local = naive.dt.replace_time_zone(self.zone, ambiguous="null", non_existent="null").dt.convert_time_zone("UTC")
        moment = local
        if not cells.is_empty() and parts["z"].count():
            moment = pl.when(zone.is_null()).then(local).otherwise(_moved(naive, zone))
        read = parts.select(moment.cast(TIME).alias(cells.name))
        return read.select(
            pl.when(pl.first().dt.timestamp("ms").is_between(_FIRST, _LAST)).then(pl.first())
        ).to_series()


def _moved(naive: pl.Expr, zone: pl.Expr) -> pl.Expr:
    """The moment of a time that names its zone: Z, or an offset."""
    # Z has no digits, and is an offset of 0.
    digits = zone.str.replace_all(r"[^0-9]", "").str.pad_end(4, "0")
    hours, minutes = (digits.str.slice(at, 2).cast(pl.Int64, strict=False).fill_null(0) for at in (0, 2))
    ahead = (hours * 60 + minutes) * _MINUTE * pl.when(zone.str.starts_with("-")).then(-1).otherwise(1)
    moved = naive.dt.replace_time_zone("UTC") - ahead.cast(pl.Duration("ms"))
    return pl.when((hours < 24) & (minutes < 60)).then(moved)


def fault_of(format_: str, zone: str) -> tuple[str, str]:
    """The member at fault, and what is wrong with it; two empty texts where both can be used."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return "zone", "It is not a time zone of the IANA database; write one such as Europe/Lisbon, or UTC."
    if format_ in _NAMED or format_ in _UNIX:
        return "", ""
    if "%" not in format_:
        return "format", f"It is neither a pattern nor one of {', '.join((*_NAMED, *_UNIX))}."
    used = [directive for directive, _ in _PATTERN.findall(format_) if directive]
    if any(plain == "" and directive not in _DIRECTIVES for directive, plain in _PATTERN.findall(format_)):
        return "format", f"A pattern may have only the directives %{', %'.join(_DIRECTIVES)}."
    if any(plain and not _PLAIN.fullmatch(plain) for _, plain in _PATTERN.findall(format_)):
        return "format", "Between directives, a pattern may have only letters, digits, spaces, and . , : / _ -."
    if len(used) != len({*used}) or not {"Y", "m", "d"} <= {*used}:
        return "format", "A pattern needs %Y, %m, and %d, and may have each directive once."
    if ("M" in used) > ("H" in used) or ("S" in used) > ("M" in used) or ("f" in used) > ("S" in used):
        return "format", "In a pattern, %M needs %H, %S needs %M, and %f needs %S."
    return "", ""


def _translated(pattern: str) -> str:
    parts = _PATTERN.findall(pattern)
    written = ""
    for (directive, plain), (following, _) in zip(parts, [*parts[1:], ("", "")], strict=True):
        # Without a character between them, a digit could belong to either of two directives.
        digits = "{2}" if following else "{1,2}"
        written += _DIRECTIVES[directive].replace("{1,2}", digits) if directive else re.escape(plain)
    return written
