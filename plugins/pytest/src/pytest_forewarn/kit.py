"""The object that tests use: one running server, and the requests that a test makes of it."""

import json
import os
import re
import tempfile
import urllib.request
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .api import Api, segment, send
from .durations import Duration, to_seconds, to_text
from .errors import ForewarnError
from .fleets import DEFAULT_FLEET, Fleet, fleet_file
from .programs import Program
from .server import Server

_EDITION = "2020-07-01"

# The command that makes an event of this type; work on a host makes the others.
_OF_MACHINE = {"Reboot": "restart", "Redeploy": "redeploy", "Terminate": "delete", "Preempt": "evict"}
_TYPES = ["Freeze", *_OF_MACHINE]

# Variables of the user that would lead a `forewarn` inside of a program to another server.
_CLEARED = ("FOREWARN_TOKEN", "FOREWARN_CA", "FOREWARN_CLUSTER")

# Machines with an environment variable.
_VARIABLES_MAX = 1000


class Clock:
    """The virtual clock of the server. It stands still until a test moves it."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @property
    def now(self) -> datetime:
        """The time of the server, in UTC."""
        return _time(self._api.get("/v1/clock")["now"])

    def advance(self, by: Duration) -> datetime:
        """Moves the clock, with everything that happens on the way: ``advance("15m")``. Numbers are seconds."""
        return self._move({"clock": "advance", "by": to_text(by)})

    def next(self, within: Optional[Duration] = None) -> datetime:
        """Moves the clock to the next change of a document, by at most ``within``."""
        request = {"clock": "next"}
        if within is not None:
            request["within"] = to_text(within)
        return self._move(request)

    def _move(self, request: Dict[str, str]) -> datetime:
        __tracebackhide__ = True
        return _time(self._api.post("/v1/clock", request)["now"])


class FleetView:
    """The hosts, tenants and machines of the server."""

    def __init__(self, server: Server, api: Api) -> None:
        self._server = server
        self._api = api

    def apply(self, fleet: Fleet) -> Any:
        """Changes the fleet to match a file: its path, its text, or a dictionary with the same keys."""
        __tracebackhide__ = True
        with tempfile.TemporaryDirectory(prefix="forewarn-") as directory:
            file = fleet_file(fleet, Path(directory))
            return json.loads(self._server.command(["--output", "json", "fleet", "apply", str(file)]))

    def machines(self) -> List[Dict[str, Any]]:
        """All machines, each with ``name``, ``tenant``, ``host``, ``power``, ``boots`` and ``events``."""
        return list(self._api.list("/v1/machines"))

    def names(self) -> List[str]:
        """The names of all machines."""
        return [machine["name"] for machine in self.machines()]

    def machine(self, vm: str) -> Dict[str, Any]:
        """One machine, by its name or ``tenant/name``."""
        __tracebackhide__ = True
        return self._api.get(f"/v1/machines/{segment(vm)}")

    def hosts(self) -> List[Dict[str, Any]]:
        """All hosts, each with its health and machines."""
        return list(self._api.list("/v1/hosts"))


class Forewarn:
    """A server for tests. ``api`` is its operator API, ``clock`` its clock, ``fleet`` its machines."""

    def __init__(
        self, fleet: Optional[Fleet] = None, *, enrolled: bool = False, options: Sequence[str] = ()
    ) -> None:
        fleet = DEFAULT_FLEET if fleet is None else fleet
        self._server = Server(fleet, [*(["--enrolled"] if enrolled else []), *options])
        self.api = Api(self._server.api)
        self.clock = Clock(self.api)
        self.fleet = FleetView(self._server, self.api)
        self._programs: List[Program] = []

    def __enter__(self) -> "Forewarn":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends programs that the test has started, and the server."""
        self.stop_programs()
        self._server.stop()

    def reset(self) -> None:
        """Ends programs that the test has started, and puts the server back to its start."""
        self.stop_programs()
        self.api.post("/v1/reset")

    @property
    def default_vm(self) -> str:
        """The machine that is meant where none is named: that of the server, or the first one of the fleet."""
        named = self.api.get("/v1/server").get("default_machine")
        return named or _references(self.fleet.machines())[0][1]

    def metadata(self, vm: Optional[str] = None) -> str:
        """The base URL of the metadata endpoint for a machine; ``/metadata/…`` is appended."""
        return f"{self._server.metadata}/vm/{segment(vm or self.default_vm)}"

    def env(self, vm: Optional[str] = None) -> Dict[str, str]:
        """A complete environment for a program that is to be this machine.

        ``FOREWARN_METADATA`` is the base URL of the machine, ``FOREWARN_VM_NAME`` that of each machine, and
        ``FOREWARN_API`` the operator API.
        """
        env = {name: value for name, value in os.environ.items() if name not in _CLEARED}
        env.update({"FOREWARN_METADATA": self.metadata(vm), "FOREWARN_API": self.api.url})
        for name, named in _references(self.fleet.machines())[:_VARIABLES_MAX]:
            env["FOREWARN_VM_" + re.sub("[^A-Z0-9]", "_", name.upper())] = self.metadata(named)
        return env

    def run(
        self,
        command: Union[str, Sequence[str]],
        vm: Optional[str] = None,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Union[str, "os.PathLike[str]", None] = None,
    ) -> Program:
        """Starts a program as this machine. It is ended with the test, if it has not ended before."""
        place = None if cwd is None else os.fspath(cwd)
        program = Program(command, {**self.env(vm), **(env or {})}, place)
        self._programs.append(program)
        return program

    def announce(self, type: str, vm: Optional[str] = None, *, require_notice: bool = True) -> Dict[str, Any]:
        """Announces an event for a machine: ``announce("Reboot", "web_0")``. Returns the event.

        ``type`` is ``Freeze``, ``Reboot``, ``Redeploy``, ``Preempt`` or ``Terminate``. If the machine would get no
        notice, because it has never polled or its type has none, the announcement fails and nothing happens; with
        ``require_notice=False`` the operation starts at once instead, and the result is an empty dictionary.
        """
        __tracebackhide__ = True
        name = vm or self.default_vm
        if type not in _TYPES:
            raise ForewarnError(f"no such event type: {type}", f"one of {', '.join(_TYPES)}")
        if type in _OF_MACHINE:
            command: Dict[str, Any] = {"command": _OF_MACHINE[type], "machine": name}
        else:
            host = self.fleet.machine(name)["host"]
            command = {"command": "update_hosts", "hosts": [host]}
        is_concerned = self._concerns(name)
        query = "?require_notice=true" if require_notice else ""
        outcome = self.api.post(f"/v1/commands{query}", command)
        return next(filter(is_concerned, outcome["events"]), {})

    def events(self, vm: Optional[str] = None) -> List[Dict[str, Any]]:
        """The active events of all machines, or of one: ``id``, ``kind``, ``status``, ``not_before``, ``approved``."""
        found = list(self.api.list("/v1/events"))
        return found if vm is None else list(filter(self._concerns(vm), found))

    def poll(self, vm: Optional[str] = None) -> Dict[str, Any]:
        """Polls as a machine, which enrols it. Returns the document that the machine reads."""
        __tracebackhide__ = True
        return send(self._metadata_request(vm))

    def approve(self, event: Union[str, Mapping[str, Any]], vm: Optional[str] = None) -> None:
        """Approves an event, or the id of one, as a machine; without ``vm`` as the first one that the event names."""
        __tracebackhide__ = True
        identity = event if isinstance(event, str) else event["id"]
        if vm is None and not isinstance(event, str):
            vm = f"{event['tenant']}/{event['resources'][0]}"
        body = json.dumps({"StartRequests": [{"EventId": identity}]}).encode()
        send(self._metadata_request(vm, body))

    def wait(
        self,
        *,
        approved: Union[str, bool, Mapping[str, Any], None] = None,
        enrolled: Union[str, bool, None] = None,
        event: Union[str, bool, None] = None,
        idle: bool = False,
        timeout: Duration = 10,
    ) -> None:
        """Waits, in real time, for one condition; :class:`ForewarnTimeout` if it is not met.

        ``approved`` is a machine, an event or the id of one, ``enrolled`` a machine, and ``True`` the default machine;
        ``event`` is a type, ``TYPE:VM``, ``:VM``, or ``True`` for any. What has happened before the call counts.
        """
        __tracebackhide__ = True
        words = ["wait"]
        if approved:
            named = approved["id"] if isinstance(approved, Mapping) else approved
            words += ["--approved", self.default_vm if named is True else named]
        if enrolled:
            words += ["--enrolled", self.default_vm if enrolled is True else enrolled]
        if event:
            words += ["--event", "" if event is True else event]
        if idle:
            words += ["--idle"]
        self._server.command([*words, "--timeout", to_text(timeout)], to_seconds(timeout) + 30)

    def fault(self, vm: str, answer: Union[str, int], *, next: int = 1) -> Any:
        """Has the next polls of a machine fail: ``fault("web_0", 500, next=3)``, or ``"hang"``, ``"reset"``, …"""
        __tracebackhide__ = True
        return self.command("fault", "create", vm, "--next", str(next), "--answer", str(answer))

    def verdict(self) -> Dict[str, Any]:
        """The verdict on all events so far, as ``forewarn verdict --output json`` prints it."""
        done = self._server.run(["--output", "json", "verdict"])
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise ForewarnError(done.stderr.strip() or "forewarn verdict printed nothing") from None

    def verdict_text(self) -> str:
        """The same as sentences."""
        done = self._server.run(["verdict"])
        return done.stdout.strip() or done.stderr.strip()

    def audit(self, limit: int = 30) -> List[Dict[str, Any]]:
        """The newest entries of the audit log, oldest first, without those about the set-up of the fleet."""
        newest = self.api.get("/v1/audit", limit=1000)["items"]
        return [entry for entry in newest if not _is_of_set_up(entry)][:limit][::-1]

    def command(self, *words: str) -> Any:
        """Runs any command of the program on this server, and returns its response."""
        __tracebackhide__ = True
        said = self._server.command(["--output", "json", *words])
        try:
            return json.loads(said) if said.strip() else None
        except ValueError:
            return said

    @property
    def programs(self) -> List[Program]:
        """The programs that the test has started, also those that have ended."""
        return list(self._programs)

    def stop_programs(self) -> None:
        """Ends the programs that the test has started."""
        while self._programs:
            self._programs.pop().close()

    def _concerns(self, vm: str) -> Callable[[Mapping[str, Any]], bool]:
        """A test of events: whether one concerns this machine."""
        if "/" not in vm:
            return lambda event: vm in event["resources"]
        tenant, name = vm.split("/", 1)
        try:
            # It may also be the scale set of several tenants.
            tenant = self.fleet.machine(vm)["tenant"]
        except ForewarnError as failure:
            # The machine may be deleted by now.
            if failure.status != 404:
                raise
        return lambda event: event["tenant"] == tenant and name in event["resources"]

    def _metadata_request(self, vm: Optional[str], body: Optional[bytes] = None) -> urllib.request.Request:
        url = f"{self.metadata(vm)}/metadata/scheduledevents?api-version={_EDITION}"
        return urllib.request.Request(url, data=body, headers={"Metadata": "true"})


def _references(machines: Sequence[Mapping[str, Any]]) -> List[Tuple[str, str]]:
    """The names of machines, and how requests name them: ``tenant/name`` for one whose name is not unique."""
    count = Counter(machine["name"] for machine in machines)
    pairs = ((machine["tenant"], machine["name"]) for machine in machines)
    return [(name, name if count[name] == 1 else f"{tenant}/{name}") for tenant, name in pairs]


def _is_of_set_up(entry: Mapping[str, Any]) -> bool:
    """True for the fleet file that the server has read at its start, and for each object in it."""
    return entry["kind"] == "admitted" or (entry["kind"] == "command" and entry["by"] == "forewarn")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
