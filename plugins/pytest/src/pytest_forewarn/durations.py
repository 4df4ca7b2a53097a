"""Durations in the form of the command line: ``90s``, ``15m``, ``2h``."""

import math
from datetime import timedelta
from typing import Union

Duration = Union[str, int, float, timedelta]


def to_text(duration: Duration) -> str:
    """A duration for the server. Numbers are seconds, rounded up to whole ones."""
    return duration if isinstance(duration, str) else f"{math.ceil(to_seconds(duration))}s"


def to_seconds(duration: Duration) -> float:
    """The length of a duration, for timeouts."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if not isinstance(duration, str):
        return float(duration)
    seconds, digits = 0.0, ""
    for character in duration:
        if character.isdigit():
            digits += character
        elif digits and character in _UNITS:
            seconds += int(digits) * _UNITS[character]
            digits = ""
        else:
            raise ValueError(f"no duration: {duration!r}; write 90s, 15m or 2h")
    if digits or not duration:
        raise ValueError(f"no duration: {duration!r}; write 90s, 15m or 2h")
    return seconds


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
