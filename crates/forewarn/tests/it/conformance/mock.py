"""An imitation of a mock of Scheduled Events: plausible, and wrong in known ways.

It ignores the header and the version, gives an event another id when it starts, prints ISO times, honours only the
first start request, and knows neither Preempt nor Terminate. With --fast, an event starts after a second.
"""

import json
import sys
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAST = "--fast" in sys.argv
LOCK = threading.Lock()
EVENTS = []
STATE = {"incarnation": 1}
NOTICE = {"Freeze": 900, "Reboot": 900, "Redeploy": 600}


def start(event):
    if event["EventStatus"] == "Scheduled":
        event.update(EventStatus="Started", NotBefore="", EventId=str(uuid.uuid4()).upper())
        STATE["incarnation"] += 1


def refresh():
    for event in EVENTS:
        if FAST and time.time() >= event["at"] + 1:
            start(event)


class Mock(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def version_string(self):
        return "mock IMDS"

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if status == 405:
            self.send_header("Allow", "GET, POST")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def is_events(self):
        path = urllib.parse.unquote(self.path).split("?")[0].rstrip("/").lower()
        return path == "/metadata/scheduledevents"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        with LOCK:
            if path == "/announce":
                return self.announce(dict(urllib.parse.parse_qsl(query)))
            if path == "/end":
                STATE["incarnation"] += sum(event["EventStatus"] == "Started" for event in EVENTS)
                EVENTS[:] = [event for event in EVENTS if event["EventStatus"] != "Started"]
                return self.answer(200)
            if not self.is_events():
                return self.answer(404, b'{"error":"not found"}')
            refresh()
            shown = [{key: value for key, value in event.items() if key != "at"} for event in EVENTS]
            document = {"DocumentIncarnation": STATE["incarnation"], "Events": shown}
            self.answer(200, json.dumps(document, separators=(",", ":")).encode())

    def announce(self, query):
        kind = query["type"]
        if kind not in NOTICE:
            return self.answer(400, b'{"error":"unknown type"}')
        due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + NOTICE[kind] + 1))
        EVENTS.append({
            "EventId": str(uuid.uuid4()).upper(), "EventStatus": "Scheduled", "EventType": kind,
            "ResourceType": "VirtualMachine", "Resources": [query["vm"]], "NotBefore": due,
            "Description": "", "EventSource": "Platform", "DurationInSeconds": -1, "at": time.time(),
        })
        STATE["incarnation"] += 1
        self.answer(200)

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        try:
            first = json.loads(body)["StartRequests"][0]["EventId"]
        except (ValueError, LookupError, TypeError):
            return self.answer(400, b'{"error":"bad request"}')
        with LOCK:
            for event in EVENTS:
                if event["EventId"].lower() == first.lower():
                    start(event)
        self.answer(200)

    def refuse(self):
        self.answer(405, b'{"error":"method not allowed"}')

    do_PUT = do_DELETE = do_HEAD = refuse

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Mock)
print(server.server_port, flush=True)
server.serve_forever()
