"""Regions: countries as ISO 3166-1 alpha-2 names them, with or without a subdivision of ISO 3166-2."""

from __future__ import annotations

import re
from typing import Final

_ASSIGNED: Final = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD
CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF
GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN
KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA
NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI
SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI
VN VU WF WS YE YT ZA ZM ZW
"""

COUNTRIES: Final = frozenset(_ASSIGNED.split())
"""The codes that ISO 3166-1 assigns. UK and EU are none of them."""

_REGION: Final = re.compile(r"([A-Z]{2})(?:-[A-Z0-9]{1,3})?")


def near(region: str) -> tuple[str, ...]:
    """The regions that hold for a region, the nearest first: US-CA and US for `us-ca`.

    Only the form of a subdivision is checked. Empty if the text is not a country.
    """
    # Before capitals are made: a letter such as ß becomes two that could name a country.
    named = _REGION.fullmatch(region.strip().upper()) if region.isascii() else None
    if named is None or named[1] not in COUNTRIES:
        return ()
    return tuple(dict.fromkeys((named[0], named[1])))


def overlap(region: str, other: str) -> bool:
    """Whether one of two regions is the other, or a subdivision of it."""
    return region == other or region.startswith(f"{other}-") or other.startswith(f"{region}-")
