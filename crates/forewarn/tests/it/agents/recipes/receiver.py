"""Takes what webhooks send, and writes each as a line of JSON: receiver.py PORT FILE."""

import http.server
import json
import sys


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = {"path": self.path, "type": self.headers["Content-Type"], "body": json.loads(body)}
        with open(sys.argv[2], "a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Receiver).serve_forever()
