# SPDX-License-Identifier: BSD-2-Clause
"""Python's ssl module as a client of tests/tls.test: it says no more than what has gone wrong.

usage: client.py COMMAND ADDRESS PORT NAME [ARGUMENT]

The bytes of TLS go through memory, so that a command decides what a segment holds. The files ca.pem,
small and big are in the current directory. An end without close_notify is an error, unless NO_REPLY is
in the environment: then close_notify needs no answer.
"""
import os
import select
import signal
import socket
import ssl
import struct
import sys

command, address, port, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
argument = sys.argv[5] if len(sys.argv) > 5 else ""
small = open("small", "rb").read()
TIMEOUT = 60


def context(version=None):
    made = ssl.create_default_context(cafile="ca.pem")
    made.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    if version:
        made.minimum_version = made.maximum_version = version
    return made


def is_cut(error):
    """The connection has ended without close_notify."""
    return isinstance(error, (ssl.SSLEOFError, ConnectionError)) or \
        getattr(error, "reason", "") == "UNEXPECTED_EOF_WHILE_READING"


def unwrap(call):
    try:
        call()
    except OSError as error:
        if not is_cut(error) or "NO_REPLY" not in os.environ:
            raise


class Session:
    """A connection whose records are sent when flush() says so, at most `piece` bytes a segment."""

    def __init__(self, prefix=b"", piece=1 << 20, made=None, resumed=None):
        self.socket = socket.create_connection((address, port), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got, self.sent, self.piece, self.prefix = ssl.MemoryBIO(), ssl.MemoryBIO(), piece, prefix
        self.tls = (made or context()).wrap_bio(
            self.got, self.sent, server_hostname=name, session=resumed)

    def flush(self):
        out, self.prefix = self.prefix + self.sent.read(), b""
        for at in range(0, len(out), self.piece):
            self.socket.sendall(out[at:at + self.piece])

    def wait(self, call, *args):
        """Calls until the server has sent enough for it; what is sent then stays unsent."""
        while True:
            try:
                return call(*args)
            except ssl.SSLWantReadError:
                self.flush()
                received = self.socket.recv(1 << 16)
                if received:
                    self.got.write(received)
                else:
                    self.got.write_eof()

    def shake(self):
        self.wait(self.tls.do_handshake)

    def read(self, n):
        parts = []
        while n > 0:
            parts.append(self.wait(self.tls.read, min(n, 1 << 16)))
            if not parts[-1]:
                break
            n -= len(parts[-1])
        return b"".join(parts)

    def echo(self, data):
        got = b""
        for at in range(0, len(data), 1 << 16):
            self.tls.write(data[at:at + (1 << 16)])
            self.flush()
            got += self.read(at - len(got))
        assert got + self.read(len(data) - len(got)) == data, "other bytes came back"

    def end(self):
        """Sends close_notify, and has to get one, and the end of the connection."""
        unwrap(lambda: (self.wait(self.tls.unwrap), self.flush()))
        assert self.socket.recv(1) == b"", "bytes after close_notify"


def echo():
    """A small one, then a large one, of which up to 128 KiB are on their way."""
    session = Session()
    session.shake()
    session.echo(small)
    session.echo(open("big", "rb").read())
    session.end()


def pieces():
    """Each byte of the handshake in a segment of its own."""
    session = Session(piece=1)
    session.shake()
    session.echo(small)
    session.end()


def glued():
    """The last flight of the handshake, data, close_notify and the end of the connection at once."""
    session = Session()
    session.shake()
    session.tls.write(small)
    try:
        session.tls.unwrap()
    except ssl.SSLWantReadError:
        pass
    session.flush()
    session.socket.shutdown(socket.SHUT_WR)
    assert session.read(len(small)) == small, "other bytes came back"
    session.end()


def proxied():
    """A PROXY header and the ClientHello in one segment; the argument is the header's version."""
    header = b"PROXY TCP4 192.0.2.1 192.0.2.2 1111 443\r\n"
    if argument == "2":
        header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes([192, 0, 2, 1, 192, 0, 2, 2]) + \
            struct.pack(">HH", 1111, 443)
    session = Session(prefix=header)
    session.shake()
    session.echo(small)
    session.end()


def ended():
    """The server ends; its close_notify comes before the end of the connection."""
    session = Session()
    session.shake()
    assert session.read(1 << 16) == b"bye\n", "other bytes came"
    session.end()


def truncated():
    """No close_notify is sent; the server has to end the connection all the same."""
    session = Session()
    session.shake()
    session.echo(small)
    session.socket.shutdown(socket.SHUT_WR)
    while session.socket.recv(1 << 16):
        pass


def damaged():
    """A record with a wrong bit; the server ends the session by an alert."""
    session = Session()
    session.shake()
    session.echo(small)
    session.tls.write(small)
    record = bytearray(session.sent.read())
    record[-1] ^= 1
    session.socket.sendall(record)
    try:
        session.read(1)
    except ssl.SSLError as error:
        assert "bad record mac" in str(error).lower().replace("_", " "), error
    else:
        assert False, "the server has taken it"


def resumed():
    """A second session resumes the first, and a third the second, in the version of the argument."""
    made, last = context(getattr(ssl.TLSVersion, argument)), None
    for i in range(3):
        session = Session(made=made, resumed=last)
        session.shake()
        session.echo(small)  # tickets have come when this is back
        assert session.tls.session_reused == (i > 0), "session %d is resumed: %s" % (i, i == 0)
        last = session.tls.session
        session.end()


def many():
    """As many handshakes at once as the argument says, an echo in each, and a clean end of each."""
    made = context()
    clients = []
    for _ in range(int(argument)):
        plain = socket.create_connection((address, port), TIMEOUT)
        plain.setblocking(False)
        clients.append(made.wrap_socket(plain, server_hostname=name, do_handshake_on_connect=False,
                                        suppress_ragged_eofs=False))
    steps = {client.fileno(): (client, [client.do_handshake, lambda c=client: c.send(small),
                                        lambda c=client: c.recv(len(small)),
                                        lambda c=client: unwrap(c.unwrap)])
             for client in clients}
    poll = select.poll()
    for fd in steps:
        poll.register(fd, select.POLLIN)
    ready = list(steps)
    while steps:
        for fd in ready:
            client, left = steps[fd]
            try:
                while left:
                    result = left[0]()
                    assert not isinstance(result, bytes) or result == small, "other bytes came back"
                    left.pop(0)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            poll.unregister(fd)
            del steps[fd]
        ready = [fd for fd, _ in poll.poll(TIMEOUT * 1000)] if steps else []
        assert ready or not steps, "%d clients wait in vain" % len(steps)


def killed():
    """Workers are killed, whose numbers are the argument: a session ends with its own alone."""
    held = [Session() for _ in range(16)]
    for session in held:
        session.shake()
        session.echo(small)
    for pid in argument.strip(",").split(","):
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:  # of the configuration before: its last session has ended
            continue
        survivors = []
        for session in held:
            try:
                session.echo(small)
                survivors.append(session)
            except OSError as error:
                if not is_cut(error):
                    raise
        held = survivors
        session = Session()
        session.shake()
        session.echo(small)
        session.end()
    assert not held, "%d sessions outlive their workers" % len(held)


globals()[command]()
