"""The fixtures and the marker, in runs of pytest of their own."""

import pytest

# Two tests, of which the second looks for what the first has left.
TWO_TESTS = """
    def test_first(FIXTURE):
        FIXTURE.poll("svc")
        FIXTURE.announce("Reboot", "svc")
        FIXTURE.clock.advance("1m")

    def test_second(FIXTURE):
        assert [event["kind"] for event in FIXTURE.events()] == EXPECTED
        tenant = FIXTURE.api.get("/v1/tenants/svc")
        assert tenant["enrolled"] == bool(EXPECTED)
"""


def write(pytester: pytest.Pytester, fixture: str, expected: str) -> None:
    pytester.makepyfile(TWO_TESTS.replace("FIXTURE", fixture).replace("EXPECTED", expected))


def test_function_scope_isolates(pytester: pytest.Pytester) -> None:
    write(pytester, "forewarn", "[]")
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_module_scope_does_not(pytester: pytest.Pytester) -> None:
    write(pytester, "forewarn_module", "['Reboot']")
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_session_has_one_server_for_each_fleet_and_scope(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", fleet='[[host]]\nname = "h1"\n\n[[vm]]\nname = "alone"\nhost = "h1"\n')
    pytester.makepyfile(
        """
        import pytest
        seen = []

        @pytest.mark.parametrize("turn", [1, 2])
        def test_default(forewarn, turn):
            seen.append(forewarn.api.url)
            assert "svc" in forewarn.fleet.names()

        @pytest.mark.forewarn(fleet="fleet.toml", enrolled=True)
        def test_other_fleet(forewarn, forewarn_module):
            seen.append(forewarn.api.url)
            assert forewarn.fleet.names() == ["alone"]
            assert forewarn.default_vm == "alone"
            assert "svc" in forewarn_module.fleet.names()
            assert forewarn.api.url != forewarn_module.api.url

        def test_count():
            assert len(seen) == 3 and len(set(seen)) == 2
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=4)


def test_a_server_that_has_ended_is_replaced(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_first(forewarn):
            process = forewarn._server._process
            process.kill()
            process.wait()

        def test_second(forewarn):
            assert forewarn.poll("svc")["Events"] == []

        def test_third(forewarn, _forewarn_servers):
            assert list(_forewarn_servers._running.values()) == [forewarn]
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_session_keeps_the_four_servers_that_were_used_last(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        seen = []

        def test_module(forewarn_module):
            seen.append(forewarn_module)

        def with_machines(*names):
            fleet = lambda name: {"host": [{"name": "h1"}], "vm": [{"name": name, "host": "h1"}]}
            marked = lambda name: pytest.param(name, marks=pytest.mark.forewarn(fleet=fleet(name)))
            return pytest.mark.parametrize("name", [marked(name) for name in names])

        @with_machines("a", "b", "c", "a", "d", "e")
        def test_fleet(forewarn, name):
            assert forewarn.fleet.names() == [name]
            if forewarn not in seen:
                seen.append(forewarn)

        def test_count(forewarn_module, _forewarn_servers):
            assert len(seen) == 6
            module, a, b, c, d, e = seen
            assert list(_forewarn_servers._running.values()) == [module, a, d, e]
            for kit in seen:
                assert (kit._server._process.poll() is not None) == (kit in (b, c))
            assert forewarn_module.fleet.names() == ["svc", "spot"]
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=8)


def test_the_ini_file_names_a_fleet_for_all(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", fleet='[[host]]\nname = "h1"\n\n[[vm]]\nname = "alone"\nhost = "h1"\n')
    pytester.makeini("[pytest]\nforewarn_fleet = fleet.toml\nforewarn_enrolled = true\n")
    pytester.makepyfile(
        """
        def test_it(forewarn):
            assert forewarn.announce("Reboot", "alone")["status"] == "Scheduled"
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_failed_test_shows_verdict_audit_log_and_programs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        service="""
        import os, time, urllib.request
        url = os.environ["FOREWARN_METADATA"] + "/metadata/scheduledevents?api-version=2020-07-01"
        print("polling without a look", flush=True)
        while True:
            urllib.request.urlopen(urllib.request.Request(url, headers={"Metadata": "true"})).read()
            time.sleep(0.02)
        """,
        test_it="""
        import sys

        def test_it(forewarn):
            forewarn.run([sys.executable, "service.py"], vm="svc")
            forewarn.wait(enrolled="svc")
            forewarn.announce("Reboot", "svc")
            forewarn.wait(approved="svc", timeout=1)
        """,
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "test_it.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*ForewarnTimeout*",
            "*- Forewarn verdict -*",
            "*svc*(Reboot)*",
            "*- Forewarn audit log -*",
            "*anyone: requested: restart, machine svc*",
            "*Reboot of svc (restart by the owner) is announced*",
            "*- output of *service.py (still running) -*",
            "polling without a look",
        ]
    )


def test_a_passed_test_shows_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(forewarn):\n    forewarn.poll('svc')\n")
    result = pytester.runpytest_subprocess("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*Forewarn*")


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("fleet='none.toml'", "*no fleet file none.toml in *"),
        ("flet='fleet.toml'", "*takes fleet, enrolled and options, not: flet*"),
        ("'fleet.toml'", "*takes fleet, enrolled and options, not: values without a name*"),
    ],
)
def test_a_wrong_marker_is_an_error(pytester: pytest.Pytester, marker: str, message: str) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.forewarn({marker})\ndef test_it(forewarn): pass\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


def test_without_a_program_there_is_a_hint(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_BIN", "")
    monkeypatch.setenv("PATH", "")
    pytester.makepyfile("def test_it(forewarn): pass\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*forewarn is not in PATH*", "*hint: set FOREWARN_BIN*"])


def test_settings_of_another_server_do_not_matter(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWARN_API", "http://127.0.0.1:1")
    monkeypatch.setenv("FOREWARN_DEV_CLOCK", "real")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    pytester.makepyfile("def test_it(forewarn):\n    forewarn.poll('svc')\n    forewarn.command('vm', 'ls')\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
