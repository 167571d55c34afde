"""Days named in headings and document names, and how a day is written out to be found by words."""

import re
from datetime import UTC, date, datetime, time

_MONTHS = (
    ("january", "jan", "januar", "janvier", "enero"),
    ("february", "feb", "februar", "fevrier", "febrero"),
    ("march", "mar", "marz", "maerz", "mars", "marzo"),
    ("april", "apr", "avril", "abril"),
    ("may", "mai", "mayo"),
    ("june", "jun", "juni", "juin", "junio"),
    ("july", "jul", "juli", "juillet", "julio"),
    ("august", "aug", "aout", "agosto"),
    ("september", "sep", "sept", "septembre", "septiembre"),
    ("october", "oct", "oktober", "okt", "octobre", "octubre"),
    ("november", "nov", "novembre", "noviembre"),
    ("december", "dec", "dezember", "dez", "decembre", "diciembre"),
)
_NUMBER = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_NAME = "|".join(sorted(_NUMBER, key=len, reverse=True))
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = tuple(names[0].title() for names in _MONTHS)

_PATTERNS = (
    re.compile(r"(?<!\d)(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<y>\d{4})年(?P<m>\d{1,2})月(?P<d>\d{1,2})日"),
    re.compile(
        rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:de\s+)?(?P<n>{_NAME})\.?,?\s+"
        r"(?:de\s+)?(?P<y>\d{4})(?!\d)"
    ),
    re.compile(rf"\b(?P<n>{_NAME})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})(?!\d)"),
    re.compile(r"(?<!\d)(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})(?!\d)"),
)
_CLOCK = re.compile(r"(?<![\d:])(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?![\d:])")
SEARCHED_CHARACTERS = 300


def find_moment(text: str) -> datetime | None:
    """The first day that the (accent-folded, lower-case) text names, with its time if one stands
    behind it. Days without a time are midnight; the zone is UTC.
    """
    text = text[:SEARCHED_CHARACTERS]
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month = int(parts["m"]) if parts.get("m") else _NUMBER[parts["n"]]
            try:
                day = date(int(parts["y"]), month, int(parts["d"]))
            except ValueError:
                continue
            clock = _CLOCK.search(text, match.end())
            at = time(int(clock["h"]), int(clock["m"])) if clock else time()
            return datetime.combine(day, at, UTC)
    return None


def written_out(moment: datetime) -> str:
    """The day in every way that a question may name it: "Monday, 8 May 2023, 2023-05-08"."""
    name, month = _DAY_NAMES[moment.weekday()], _MONTH_NAMES[moment.month - 1]
    return f"{name}, {moment.day} {month} {moment.year}, {moment.date().isoformat()}"
