"""A service that is tested: it polls its metadata endpoint, and does what its arguments say.

service.py [--as VM] [--bare] [--drain SECONDS] [--ignore] [--plain] [--once] [--silent] [--exit CODE] [--note FILE]
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request

options = argparse.ArgumentParser()
options.add_argument("--as", dest="machine", help="the machine to be, by its variable FOREWARN_VM_…")
options.add_argument("--drain", type=float, default=0.0, help="seconds from an event to its approval")
options.add_argument("--ignore", action="store_true", help="approves nothing")
options.add_argument("--once", action="store_true", help="ends after the first event")
options.add_argument("--bare", action="store_true", help="uses the address without the path of its machine")
options.add_argument("--plain", action="store_true", help="polls without the header")
options.add_argument("--silent", action="store_true", help="never polls")
options.add_argument("--exit", type=int, help="ends at once with that code")
options.add_argument("--note", help="file for the id of this process")
arguments = options.parse_args()

if arguments.note:
    with open(arguments.note, "w", encoding="ascii") as note:
        note.write(str(os.getpid()))
if arguments.exit is not None:
    sys.exit(arguments.exit)
while arguments.silent:
    time.sleep(0.05)

base = os.environ["FOREWARN_VM_" + arguments.machine if arguments.machine else "FOREWARN_METADATA"]
if arguments.bare:
    base = base.split("/vm/")[0]
url = base + "/metadata/scheduledevents?api-version=2020-07-01"
headers = {} if arguments.plain else {"Metadata": "true"}
done = set()
while True:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            events = json.load(response)["Events"]
    except urllib.error.HTTPError:
        events = []
    fresh = [e["EventId"] for e in events if e["EventStatus"] == "Scheduled" and e["EventId"] not in done]
    if fresh and not arguments.ignore:
        time.sleep(arguments.drain)
        body = json.dumps({"StartRequests": [{"EventId": event} for event in fresh]}).encode()
        urllib.request.urlopen(urllib.request.Request(url, data=body, headers={"Metadata": "true"})).read()
        done.update(fresh)
        print("drained and approved", flush=True)
    if done and arguments.once and not events:
        sys.exit(0)
    time.sleep(0.01)
