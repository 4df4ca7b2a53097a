"""Keeps a connection to a server of these tests, and does what it is told, a line for each: caller.py ADDRESS PORT.

ask: one more request. leave: ends the connection. stay: waits until the other side ends it.
"""

import socket
import sys

connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))


def ask():
    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
    return "answered" if connection.recv(4096) else "closed"


def stay():
    return "answered" if connection.recv(4096) else "closed"


def leave():
    connection.close()
    return "left"


for line in sys.stdin:
    try:
        print({"ask": ask, "stay": stay, "leave": leave}[line.strip()](), flush=True)
    except ConnectionError:
        print("cut", flush=True)
