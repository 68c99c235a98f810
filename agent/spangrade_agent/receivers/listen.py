"""Where a server listens: ``host:port`` read, bound with a clear error, and the TLS files behind it."""

import errno
import hmac
import socket
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spangrade.errors import ConfigError

_EXAMPLE: Final = "host:port, for example 127.0.0.1:4318, [::1]:4318 or 0.0.0.0:4318 (port 0: any free port)"
_NO_SUCH_FAMILY: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """PEM files of a listener; with ``client_ca`` only clients with a certificate of that authority come in (mTLS)."""

    cert: str
    key: str
    client_ca: str | None = None

    @classmethod
    def of(cls, tls: "ServerTls | tuple[str, str] | None") -> "ServerTls | None":
        """``(cert, key)`` is enough where no client certificate is asked for."""
        return cls(*tls) if isinstance(tls, tuple) else tls

    def files(self) -> tuple[bytes, bytes, bytes | None]:
        """Contents of certificate chain, key and client authority.

        Raises:
            ConfigError: a file that cannot be read; the message names it.
        """
        client_ca = None if self.client_ca is None else _read("client_ca", self.client_ca)
        return _read("cert", self.cert), _read("key", self.key), client_ca

    def context(self) -> ssl.SSLContext:
        """For servers on Python's own TLS, 1.2 and newer.

        Raises:
            ConfigError: a file that cannot be read, or that does not hold what its name says.
        """
        self.files()  # for its message: ssl's own does not say which file is missing
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # Without the password function OpenSSL would ask for a key's password on the terminal and wait.
            context.load_cert_chain(self.cert, self.key, password=_no_password)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except (ssl.SSLError, ValueError) as fault:
            raise ConfigError(
                f"tls: {self.cert!r} and {self.key!r} are not a PEM certificate and its unencrypted key: {fault}"
            ) from fault
        return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; give an unencrypted one")


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as fault:
        raise ConfigError(f"tls.{name} {path!r} cannot be read: {fault.strerror}; give a PEM file") from fault


def parse_listen(listen: str) -> tuple[str, int]:
    """``host:port`` as (host, port); brackets of an IPv6 host are taken off, no host means all addresses.

    Raises:
        ConfigError: anything else.
    """
    host, colon, port = listen.strip().rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed) or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ConfigError(f"listen {listen!r} is not an address; give {_EXAMPLE}")
    return (host[1:-1] if bracketed else host) or "0.0.0.0", int(port)  # noqa: S104 - asked for with ":4318"


def bind(listen: str, name: str) -> list[socket.socket]:
    """Sockets bound to ``listen``, not yet listening: one, or one per family for a name such as ``localhost``
    (Node resolves it to ::1, others to 127.0.0.1), all on one port.

    Raises:
        ConfigError: the address is in use, not of this machine or not allowed; the message names it and ``name``.
    """
    host, port = parse_listen(listen)
    sockets: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        missing: OSError | None = None
        for family, kind, proto, _, address in dict.fromkeys(found):
            try:
                sockets.append(_bind_one(family, kind, proto, (address[0], port, *address[2:])))
            except OSError as fault:
                if fault.errno not in _NO_SUCH_FAMILY:  # a host file that knows ::1 on a machine without IPv6
                    raise
                missing = fault
            else:
                port = sockets[-1].getsockname()[1]  # with port 0, the next family takes the same one
        if not sockets:
            raise missing or OSError(errno.EADDRNOTAVAIL, "no address")
    except (OSError, UnicodeError) as fault:
        for bound in sockets:
            bound.close()
        raise ConfigError(f"{name} cannot listen on {listen!r}: {_reason(fault)}") from fault
    return sockets


def _bind_one(family: int, kind: int, proto: int, address: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family, kind, proto)
    try:
        if sys.platform != "win32":  # there the option would let two programs share the port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def _reason(fault: Exception) -> str:
    if isinstance(fault, socket.gaierror | UnicodeError):
        return f"the host is not known here; give {_EXAMPLE}"
    code = getattr(fault, "errno", None)
    if code == errno.EADDRINUSE:
        return "the address is in use; stop what listens there (another agent, a Collector?) or give another port"
    if code == errno.EACCES:
        return "not allowed for this user; give a port above 1023"
    if code in _NO_SUCH_FAMILY:
        return "not an address of this machine; give 127.0.0.1, 0.0.0.0 or one of its own"
    return str(fault)


def token_fits(given: str | bytes | None, token: str) -> bool:
    """Whether an ``Authorization`` value is ``Bearer <token>``; takes as long for a wrong one as for the right one."""
    value = given.encode("utf-8", "replace") if isinstance(given, str) else given or b""
    scheme, _, rest = value.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(rest.strip(), token.encode())
