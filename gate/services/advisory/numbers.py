"""The numbers of cards and bank accounts in a text, known by their form and their checksum.

Both searches take time in proportion to the text: contexts are hostile.
"""

from __future__ import annotations

import re
from typing import Final

# The usual groups of a card number, with or without one mark between them; it begins where digits begin.
_CARD: Final = re.compile(
    r"[2-6](?<![0-9.][2-6])"
    r"(?=([0-9]{3}(?:[ -]?[0-9]{4}){3}(?:[ -]?[0-9]{3})?|[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5})(?![0-9]))"
)
# By the first digits and their count: Visa, Mastercard, American Express, Diners, Discover, JCB.
_ISSUED: Final = re.compile(
    r"4(?:[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|"
    r"3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|35[0-9]{14}"
)
# The sum of the digits of each digit's double.
_DOUBLED: Final = bytes.maketrans(b"0123456789", b"0246813579")

_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}")
# How long an IBAN is in each country of the SWIFT registry.
_LENGTHS: Final = {
    country: int(length)
    for country, length in re.findall(
        "([A-Z]{2})([0-9]{2})",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
        "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
        "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
        "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20",
    )
}
# So many digits follow the first four characters of an account's number, and of no sentence.
_FEWEST_DIGITS: Final = 7
# As the checksum of an IBAN reads it: A is 10.
_AS_NUMBERS: Final = {ord(letter): str(int(letter, 36)) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_SHORTEST: Final = 14


def holds_account_number(text: str) -> bool:
    """Whether a text holds the number of a card or an IBAN, with or without spaces or hyphens in it."""
    return len(text) >= _SHORTEST and (
        any(_is_card(_joined(found[0] + found[1])) for found in _CARD.finditer(text))
        or any(_is_iban(text, found.start()) for found in _IBAN.finditer(text))
    )


def _is_card(number: str) -> bool:
    if not _ISSUED.fullmatch(number):
        return False
    digits = number.encode()
    return (sum(digits[::-2]) + sum(digits[-2::-2].translate(_DOUBLED)) - len(digits) * ord("0")) % 10 == 0


def _is_iban(text: str, start: int) -> bool:
    if not (length := _LENGTHS.get(text[start : start + 2].upper())):
        return False
    # Each character may have a mark after it.
    number = _joined(text[start : start + 2 * length])[:length]
    if len(number) < length or not number.isascii():
        return False
    number = number.upper()
    digits = (number[4:] + number[:4]).translate(_AS_NUMBERS)
    # Each letter became two digits; two letters and two digits are the country and the checksum.
    letters = len(digits) - length
    return digits.isdecimal() and length - letters - 2 >= _FEWEST_DIGITS and int(digits) % 97 == 1


def _joined(number: str) -> str:
    return number.replace(" ", "").replace("-", "")
