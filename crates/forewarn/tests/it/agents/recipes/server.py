"""Answers with its name, and keeps a connection for as long as its caller does: server.py PORT NAME."""

import socketserver
import sys


class Greeter(socketserver.StreamRequestHandler):
    def handle(self):
        name = sys.argv[2].encode()
        while line := self.rfile.readline():
            if line in (b"\r\n", b"\n"):
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(name)
                self.wfile.write(head + name)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("", int(sys.argv[1])), Greeter).serve_forever()
