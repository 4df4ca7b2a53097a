"""Requests to the operator API and to the metadata endpoint. They never go through a proxy."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Dict, Iterator, Optional, Tuple
from urllib.parse import quote, urlencode

from .errors import ForewarnError

# Longer than the server waits for anything.
_TIMEOUT_SECONDS = 90

# The most entries that the server puts into one page.
_PAGE = 1000

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Api:
    """The operator API of one server, at ``url``. Paths begin with ``/v1``."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __str__(self) -> str:
        return self.url

    def get(self, path: str, **parameters: Any) -> Any:
        """Gets a resource; parameters that are ``None`` are left out."""
        __tracebackhide__ = True
        given = {name: value for name, value in parameters.items() if value is not None}
        return self.request("GET", f"{path}?{urlencode(given)}" if given else path)

    def post(self, path: str, body: Any = None) -> Any:
        """Sends a body as JSON."""
        __tracebackhide__ = True
        return self.request("POST", path, body)

    def list(self, path: str, **parameters: Any) -> Iterator[Dict[str, Any]]:
        """The items of all pages of a list."""
        __tracebackhide__ = True
        after = None
        while True:
            page = self.get(path, limit=_PAGE, after=after, **parameters)
            yield from page["items"]
            after = page.get("next")
            if after is None:
                return

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a request, and returns the decoded response. A rejected one raises :class:`ForewarnError`."""
        __tracebackhide__ = True
        headers = {"Content-Type": "application/json"} if body is not None else {}
        data = json.dumps(body).encode() if body is not None else None
        return send(urllib.request.Request(self.url + path, data=data, headers=headers, method=method))


def segment(name: str) -> str:
    """A name as a part of a path. The ``/`` of ``tenant/name`` stays."""
    return quote(name, safe="/")


def send(request: urllib.request.Request) -> Any:
    """Sends any request of a test to the server."""
    __tracebackhide__ = True
    try:
        status, reason, body = _exchange(request)
    except (OSError, http.client.HTTPException) as failure:
        why = getattr(failure, "reason", failure)
        raise ForewarnError(f"no response from {request.full_url}: {why}", "has the server ended?") from None
    answer = _decode(body)
    if status < 300:
        return answer
    problem = answer if isinstance(answer, dict) else {"detail": f"status {status}: {answer or reason}"}
    if "error" in problem:
        # The metadata endpoint has a format of its own.
        problem = {"detail": str(problem["error"])}
    raise ForewarnError.from_problem(status, problem)


def _exchange(request: urllib.request.Request) -> Tuple[int, str, bytes]:
    """Status, its name, and the whole body of a response, also of a rejected request."""
    try:
        with _opener.open(request, timeout=_TIMEOUT_SECONDS) as response:
            return response.status, response.reason, response.read()
    except urllib.error.HTTPError as rejected:
        with rejected:
            return rejected.code, rejected.reason, rejected.read()


def _decode(body: bytes) -> Optional[Any]:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
