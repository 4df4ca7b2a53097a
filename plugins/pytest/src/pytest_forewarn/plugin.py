"""The fixtures ``forewarn`` and ``forewarn_module``, the marker, and the report of a failed test."""

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set, Tuple

import pytest

from .errors import ForewarnError
from .fleets import is_text
from .kit import Forewarn

_FIXTURES = ("forewarn", "forewarn_module")
# Characters of a command in the title of its output.
_TITLE_MAX = 60

# Servers that are kept for tests to come.
_SERVERS_MAX = 4

_MARKER_KEYS = {"fleet", "enrolled", "options"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("forewarn_fleet", "fleet file of tests without a marker, relative to this file", default="")
    parser.addini("forewarn_enrolled", "every machine gets notices without a poll", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "forewarn(fleet, enrolled, options): the server of this test or module: a fleet file or dictionary,"
        " enrolled=True for notices without a poll, and more options of `forewarn dev`",
    )


class _Servers:
    """The servers of this session: one for each fleet, and for each scope."""

    def __init__(self) -> None:
        # The one that was used last is the last.
        self._running: Dict[str, Forewarn] = {}
        self._in_use: Set[str] = set()

    @contextmanager
    def lend(self, scope: str, settings: Dict[str, Any]) -> Iterator[Forewarn]:
        """A server with these settings in the state in which it starts."""
        key = json.dumps([scope, settings], default=str, sort_keys=True)
        kit = self._fresh(key, settings)
        self._in_use.add(key)
        try:
            yield kit
        finally:
            self._in_use.discard(key)
            kit.stop_programs()

    def _fresh(self, key: str, settings: Dict[str, Any]) -> Forewarn:
        found = self._running.pop(key, None)
        if found is not None:
            try:
                found.reset()
            except ForewarnError:
                # It has ended, or is of no use any more.
                found.stop()
                found = None
        if found is None:
            self._make_room()
            found = Forewarn(**settings)
        self._running[key] = found
        return found

    def _make_room(self) -> None:
        """Ends the servers that have not been used for the longest time."""
        idle = [key for key in self._running if key not in self._in_use]
        for key in idle[: max(0, len(self._running) + 1 - _SERVERS_MAX)]:
            self._running.pop(key).stop()

    def stop(self) -> None:
        while self._running:
            self._running.popitem()[1].stop()


@pytest.fixture(scope="session")
def _forewarn_servers() -> Iterator[_Servers]:
    servers = _Servers()
    yield servers
    servers.stop()


@pytest.fixture
def forewarn(request: pytest.FixtureRequest, _forewarn_servers: _Servers) -> Iterator[Forewarn]:
    """A Forewarn server, in the state in which it starts, for one test."""
    with _forewarn_servers.lend("function", _settings(request)) as kit:
        yield kit


@pytest.fixture(scope="module")
def forewarn_module(request: pytest.FixtureRequest, _forewarn_servers: _Servers) -> Iterator[Forewarn]:
    """A Forewarn server for all tests of a module: each test finds what the one before it has left."""
    with _forewarn_servers.lend("module", _settings(request)) as kit:
        yield kit


def _settings(request: pytest.FixtureRequest) -> Dict[str, Any]:
    """The settings of the nearest marker, and those of the ini file for what it leaves out."""
    config = request.config
    marker = request.node.get_closest_marker("forewarn")
    given = dict(marker.kwargs) if marker else {}
    unknown = sorted(set(given) - _MARKER_KEYS)
    if unknown or (marker and marker.args):
        words = ", ".join(unknown) or "values without a name"
        raise pytest.UsageError(f"the marker forewarn takes fleet, enrolled and options, not: {words}")
    settings: Dict[str, Any] = {"enrolled": given.get("enrolled", config.getini("forewarn_enrolled"))}
    fleet = given.get("fleet")
    if isinstance(fleet, str) and not is_text(fleet) or isinstance(fleet, Path):
        fleet = _find(fleet, [Path(str(request.path)).parent, config.rootpath])
    elif fleet is None and config.getini("forewarn_fleet"):
        fleet = _find(config.getini("forewarn_fleet"), [config.inipath.parent if config.inipath else config.rootpath])
    settings["fleet"] = fleet
    settings["options"] = list(given.get("options", ()))
    return settings


def _find(file: "str | Path", places: List[Path]) -> Path:
    for place in places:
        if (place / file).is_file():
            return place / file
    tried = " or ".join(dict.fromkeys(str(place) for place in places))
    raise pytest.UsageError(f"no fleet file {file} in {tried}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "teardown" or not report.failed:
        return
    found = getattr(item, "funcargs", {})
    for kit in (found[name] for name in _FIXTURES if name in found):
        report.sections.extend(_sections(kit))


def _sections(kit: Forewarn) -> Iterator[Tuple[str, str]]:
    """What the server and the programs say about a failed test. A dead server must not hide the failure itself."""
    try:
        yield "Forewarn verdict", kit.verdict_text()
        entries = (f"{entry['at']}  {entry['by']}: {entry['text']}" for entry in kit.audit())
        yield "Forewarn audit log", "\n".join(entries)
    except (ForewarnError, OSError) as failure:
        yield "Forewarn", str(failure)
    for program in kit.programs:
        code = program.returncode
        state = "still running" if code is None else f"exit code {code}"
        yield f"output of {_one_line(program.command)} ({state})", program.output.rstrip() or "nothing"


def _one_line(command: str) -> str:
    program, *rest = command.split()
    words = " ".join([Path(program).name, *rest])
    return words if len(words) <= _TITLE_MAX else f"{words[:_TITLE_MAX]}…"
