"""What holds for every request that is made up.

The token with which they are made is not revoked, or nothing would be tried after that. And most keys are new: one that was used
for another request is refused, whatever else the request says. And nobody outside is bothered: webhooks that are made up lead to a port
of this computer where nobody listens.
"""

import re
from itertools import count

import schemathesis

OWN_TOKEN = "first"

KEY = re.compile("[!-~]{1,255}")
USED_AGAIN_EVERY = 8

URL = re.compile("https?://[A-Za-z0-9][!-~]*")
NOBODY = "http://127.0.0.1:9/"

numbers = count(1)


@schemathesis.hook
def filter_case(context, case):
    revokes = case.operation.label == "DELETE /v1/tokens/{name}"
    return not revokes or (case.path_parameters or {}).get("name") != OWN_TOKEN


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    key = headers.get("Idempotency-Key")
    # Where another header is the point, nothing is touched: a case that was changed gets the token back that it must not have.
    if getattr(getattr(case.meta.phase, "data", None), "parameter", None) == "Authorization":
        return
    if isinstance(key, str) and KEY.fullmatch(key):
        number = next(numbers)
        if number % USED_AGAIN_EVERY != 0:
            headers["Idempotency-Key"] = f"key-{number}"
    body = case.body
    if case.operation.label == "POST /v1/webhooks" and isinstance(body, dict):
        url = body.get("url")
        if isinstance(url, str) and URL.fullmatch(url):
            body["url"] = NOBODY
