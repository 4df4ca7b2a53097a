"""Polls a URL once with the standard library, and prints what becomes of it."""

import http.client
import sys
import urllib.error
import urllib.request

request = urllib.request.Request(sys.argv[1], headers={"Metadata": "true"})
try:
    with urllib.request.urlopen(request, timeout=float(sys.argv[2])) as response:
        body = response.read()
        print("document" if body.startswith(b'{"DocumentIncarnation"') else f"body of {len(body)} bytes")
except urllib.error.HTTPError as error:
    print(f"status {error.code} retry-after {error.headers['Retry-After']}")
except http.client.IncompleteRead:
    print("incomplete")
except ConnectionResetError:
    print("reset")
except urllib.error.URLError as error:
    print("reset" if isinstance(error.reason, ConnectionResetError) else f"other {error.reason!r}")
except TimeoutError:
    print("timeout")
