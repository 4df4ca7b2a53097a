"""Fleet files from what a test gives: a path, the text of a TOML file, or a dictionary with the same keys."""

import json
from pathlib import Path
from typing import Any, Dict, Union

Fleet = Union[str, Path, Dict[str, Any]]

# The fleet of tests that name none: the service, which gets every type of event but Preempt, and a spot machine.
DEFAULT_FLEET: Dict[str, Any] = {
    "host": [{"name": "h1"}, {"name": "h2"}],
    "vm": [
        {"name": "svc", "host": "h1", "terminate": "5m"},
        {"name": "spot", "host": "h2", "spot": "delete"},
    ],
}


def to_toml(fleet: Dict[str, Any]) -> str:
    """A dictionary in the form of a fleet file, one line for each key."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in fleet.items())


def fleet_file(fleet: Fleet, directory: Path) -> Path:
    """The file of a fleet; one that is no file is written into the directory."""
    if isinstance(fleet, Path) or (isinstance(fleet, str) and not is_text(fleet)):
        return Path(fleet)
    file = directory / "fleet.toml"
    file.write_text(to_toml(fleet) if isinstance(fleet, dict) else fleet, "utf-8")
    return file


def is_text(fleet: Fleet) -> bool:
    """True for the text of a file; a path has one line and no ``=``."""
    return isinstance(fleet, str) and ("\n" in fleet or "=" in fleet)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, (str, bool, int)):
        # The same text in JSON and in TOML, as long as nothing is escaped in pairs of surrogates.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise TypeError(f"a fleet file has no value of this type: {value!r}")


def _key(name: str) -> str:
    return json.dumps(str(name), ensure_ascii=False).replace("\x7f", "\\u007f")
