"""An endpoint that knows only the preview, 2017-03-01, in front of one that knows more: preview.py LISTEN BEHIND."""

import http.client
import http.server
import sys
import urllib.parse

ADDRESS, PORT = sys.argv[1].split(":")


class Preview(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_new = "scheduledevents" in self.path and query.get("api-version") != ["2017-03-01"]
        if is_new or "/metadata/forewarn/" in self.path:
            error = b'{"error":"Bad request. api-version is invalid or was not specified in the request.","newest-versions":["2017-03-01"]}'
            return self.say(400, [], error)
        behind = http.client.HTTPConnection(sys.argv[2])
        behind.request(self.command, self.path, body or None, {"Metadata": "true"})
        answer = behind.getresponse()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() in ("content-type", "etag", "date")]
        return self.say(answer.status, kept, answer.read())

    def say(self, status, headers, body):
        self.send_response_only(status)
        self.send_header("Server", "Microsoft-IIS/10.0")
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = pass_on


http.server.ThreadingHTTPServer((ADDRESS, int(PORT)), Preview).serve_forever()
