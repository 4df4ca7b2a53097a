"""The object that tests get: each method once, against a running server."""

import socket
import sys
import tempfile
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from pytest_forewarn import Forewarn, ForewarnError, ForewarnTimeout
from pytest_forewarn.api import Api

FLEET = {
    "host": [{"name": "h1"}, {"name": "h2"}],
    "vm": [{"name": "svc", "host": "h1", "tags": {"role": 'a "quoted" one'}}, {"name": "my-db", "host": "h2"}],
}

# Two tenants have a machine of the same name, on the same host.
TWO_TENANTS = {
    "host": [{"name": "h1"}],
    "availability_set": [{"name": name, "machine": [{"name": "web_0", "host": "h1"}]} for name in ("a", "b")],
}

pytestmark = pytest.mark.forewarn(fleet=FLEET)

# A service in as few lines as possible: it approves all that it reads, until it has approved something.
SERVICE = """
import json, os, time, urllib.request
url = os.environ["FOREWARN_METADATA"] + "/metadata/scheduledevents?api-version=2020-07-01"
def ask(data=None):
    return urllib.request.urlopen(urllib.request.Request(url, data, {"Metadata": "true"})).read()
while True:
    events = [e for e in json.loads(ask())["Events"] if e["EventStatus"] == "Scheduled"]
    if events:
        print("approving", events[0]["EventType"], flush=True)
        ask(json.dumps({"StartRequests": [{"EventId": e["EventId"]} for e in events]}).encode())
    time.sleep(0.02)
"""


def test_a_machine_polls_approves_and_is_restarted(forewarn: Forewarn) -> None:
    assert forewarn.poll("svc")["Events"] == []
    event = forewarn.announce("Reboot", "svc")
    assert (event["kind"], event["status"]) == ("Reboot", "Scheduled")
    assert [read["EventId"] for read in forewarn.poll("svc")["Events"]] == [event["id"]]
    forewarn.approve(event)
    assert [one["status"] for one in forewarn.events("svc")] == ["Started"]
    assert forewarn.events("my-db") == []
    forewarn.clock.next()
    assert forewarn.events() == []
    assert forewarn.fleet.machine("svc")["boots"] == 2


def test_a_notice_runs_out_on_the_virtual_clock(forewarn: Forewarn) -> None:
    forewarn.poll("svc")
    begin = forewarn.clock.now
    forewarn.announce("Redeploy", "svc")
    assert forewarn.clock.advance("9m59s") == begin + timedelta(minutes=9, seconds=59)
    assert forewarn.events()[0]["status"] == "Scheduled"
    forewarn.clock.advance(timedelta(seconds=1))
    assert forewarn.events()[0]["status"] == "Started"


def test_every_type_can_be_announced(forewarn: Forewarn) -> None:
    fleet = {
        "host": [{"name": "h3"}],
        "vm": [{"name": "cheap", "host": "h3", "spot": "delete"}, {"name": "short", "host": "h3", "terminate": "5m"}],
    }
    forewarn.fleet.apply(fleet)
    assert set(forewarn.fleet.names()) == {"svc", "my-db", "cheap", "short"}
    for vm in forewarn.fleet.names():
        forewarn.poll(vm)
    for type, vm in [("Freeze", "my-db"), ("Reboot", "svc"), ("Preempt", "cheap"), ("Terminate", "short")]:
        assert forewarn.announce(type, vm)["kind"] == type
    with pytest.raises(ForewarnError, match="no such event type: Restart") as caught:
        forewarn.announce("Restart", "svc")
    assert "Reboot" in caught.value.hint


def test_a_machine_that_never_polled_gets_no_event_and_is_left_alone(forewarn: Forewarn) -> None:
    with pytest.raises(ForewarnError) as caught:
        forewarn.announce("Reboot", "svc")
    assert caught.value.status == 409
    assert caught.value.hint
    assert forewarn.fleet.machine("svc")["boots"] == 1
    assert forewarn.announce("Reboot", "svc", require_notice=False) == {}
    assert forewarn.fleet.machine("svc")["boots"] == 2


@pytest.mark.forewarn(fleet=FLEET, enrolled=True)
def test_an_enrolled_fleet_gets_events_without_a_poll(forewarn: Forewarn) -> None:
    assert forewarn.announce("Reboot", "svc")["status"] == "Scheduled"


def test_an_error_has_the_sentence_and_the_hint_of_the_server(forewarn: Forewarn) -> None:
    with pytest.raises(ForewarnError) as caught:
        forewarn.announce("Reboot", "svd")
    assert str(caught.value) == "no such machine: svd\n  hint: did you mean svc?"
    assert (caught.value.status, caught.value.type) == (404, "/problems/not-found")
    with pytest.raises(ForewarnError, match="no such machine: svd"):
        forewarn.command("vm", "show", "svd")
    with pytest.raises(ValueError, match="no duration: '10x'"):
        forewarn.wait(idle=True, timeout="10x")


def test_the_environment_names_every_machine(forewarn: Forewarn, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared = {"FOREWARN_TOKEN", "FOREWARN_CA", "FOREWARN_CLUSTER"}
    for name in cleared:
        monkeypatch.setenv(name, "of another server")
    env = forewarn.env("my-db")
    assert not cleared & set(env)
    assert env["FOREWARN_METADATA"] == env["FOREWARN_VM_MY_DB"] == forewarn.metadata("my-db")
    assert env["FOREWARN_VM_SVC"].endswith("/vm/svc")
    assert env["FOREWARN_API"] == str(forewarn.api)
    assert "PATH" in env
    assert forewarn.metadata() == forewarn.metadata("svc")


@pytest.mark.forewarn(fleet=TWO_TENANTS, enrolled=True)
def test_machines_with_the_same_name_are_told_apart_by_their_tenants(forewarn: Forewarn) -> None:
    assert forewarn.default_vm == "a/web_0"
    env = forewarn.env()
    assert env["FOREWARN_METADATA"] == forewarn.metadata("a/web_0")
    # The last one, as in `forewarn test`.
    assert env["FOREWARN_VM_WEB_0"] == forewarn.metadata("b/web_0")
    assert forewarn.announce("Freeze", "b/web_0")["tenant"] == "b"
    for vm, tenants in [("a/web_0", ["a"]), ("b/web_0", ["b"]), ("web_0", ["a", "b"]), ("c/web_0", [])]:
        assert sorted(event["tenant"] for event in forewarn.events(vm)) == tenants


def test_a_program_is_the_machine_and_waits_see_it(forewarn: Forewarn) -> None:
    program = forewarn.run([sys.executable, "-c", SERVICE], vm="svc")
    forewarn.wait(enrolled="svc")
    event = forewarn.announce("Reboot", "svc")
    forewarn.wait(approved=event["id"])
    forewarn.wait(approved="svc")
    forewarn.wait(event="Reboot:svc")
    forewarn.clock.advance("1m")
    forewarn.wait(idle=True)
    assert program.returncode is None
    assert program.output == "approving Reboot\n"
    assert [one["kind"] for one in forewarn.audit()][-1] in {"completed", "command"}
    program.stop()
    assert program.returncode == -15


def test_a_wait_has_an_end(forewarn: Forewarn) -> None:
    forewarn.poll("svc")
    forewarn.announce("Reboot", "svc")
    with pytest.raises(ForewarnTimeout, match="^timed out after 1s: svc is not approved"):
        forewarn.wait(approved="svc", timeout=1)


def test_a_verdict_tells_an_approved_event_from_one_that_ran_out(forewarn: Forewarn) -> None:
    forewarn.poll("svc")
    forewarn.approve(forewarn.announce("Reboot", "svc"))
    forewarn.clock.next()
    assert forewarn.verdict()["passed"] is True
    forewarn.poll("my-db")
    forewarn.announce("Reboot", "my-db")
    forewarn.poll("my-db")
    forewarn.clock.advance("16m")
    assert forewarn.verdict()["passed"] is False
    assert "my-db" in forewarn.verdict_text()


def test_polls_fail_as_often_as_asked(forewarn: Forewarn) -> None:
    forewarn.poll("svc")
    forewarn.fault("svc", 500, next=2)
    for _ in range(2):
        with pytest.raises(ForewarnError) as caught:
            forewarn.poll("svc")
        assert caught.value.status == 500
    assert forewarn.poll("svc")["Events"] == []


def test_a_reset_ends_faults_and_programs(forewarn: Forewarn) -> None:
    program = forewarn.run([sys.executable, "-c", SERVICE], vm="svc")
    forewarn.wait(enrolled="svc")
    forewarn.fault("my-db", 500, next=100)
    forewarn.reset()
    assert program.returncode == -15
    assert forewarn.poll("my-db")["Events"] == []
    assert forewarn.api.get("/v1/tenants/svc")["enrolled"] is False


def test_the_server_says_why_it_does_not_start() -> None:
    with pytest.raises(ForewarnError, match="no such host: h9"):
        Forewarn({"vm": [{"name": "a", "host": "h9"}]})


def test_a_server_that_does_not_start_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(TypeError, match="no value of this type: 1.5"):
        Forewarn({"host": 1.5})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error", "no status"])
def test_half_a_response_is_an_error_of_the_kit(status: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def respond() -> None:
            with listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 10\r\n\r\nhalf".encode())

        server = threading.Thread(target=respond)
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ForewarnError, match=f"^no response from {url}/v1/clock: ") as caught:
            Api(url).get("/v1/clock")
        server.join()
    assert caught.value.hint == "has the server ended?"
