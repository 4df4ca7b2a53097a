"""Errors of the server, with its sentence and its hint."""

from typing import Any, Dict, Optional


class ForewarnError(Exception):
    """A rejected request, or a command that failed.

    ``status`` is the HTTP status, or the exit code of a command; ``type`` is the kind of the problem, for programs;
    ``detail`` is the sentence of the server, without its hint.
    """

    def __init__(
        self,
        detail: str,
        hint: Optional[str] = None,
        status: Optional[int] = None,
        type: Optional[str] = None,
    ) -> None:
        super().__init__(f"{detail}\n  hint: {hint}" if hint else detail)
        self.detail = detail
        self.hint = hint
        self.status = status
        self.type = type

    @classmethod
    def from_problem(cls, status: int, problem: Dict[str, Any]) -> "ForewarnError":
        """The error for a problem document of the operator API, whose ``detail`` also ends with the hint."""
        detail, hint = split_hint(str(problem.get("detail") or problem.get("title") or f"status {status}"))
        return cls(detail, problem.get("hint") or hint, status, problem.get("type"))


class ForewarnTimeout(ForewarnError):
    """A condition that did not become true in time."""


def split_hint(text: str) -> "tuple[str, Optional[str]]":
    """Divides a message into its sentence and its hint, which is on a line of its own."""
    lines = text.strip().splitlines()
    for place, line in enumerate(lines):
        if line.strip().startswith("hint: "):
            rest = [line.strip()[len("hint: ") :], *lines[place + 1 :]]
            return "\n".join(lines[:place]).strip(), "\n".join(rest).strip()
    return "\n".join(lines), None
