"""The cluster's DNS: answers from Services and Endpoints as CoreDNS does, follows them by a watch, forwards nothing.

python -m cluster.dns KUBECONFIG ADDRESS
"""

from __future__ import annotations

import itertools
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dnslib import PTR, QTYPE, RCODE, RR, A, DNSRecord
from dnslib.server import BaseResolver, DNSHandler, DNSServer

from cluster.client import Client, Refused

ZONE = "cluster.local"
LONGEST = 512  # bytes of an answer over UDP
TTL = 1  # nobody shall remember what a watch has just changed


class Names:
    """Every name of the cluster; replaced as a whole, so that a reader never sees half a change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {"services": {}, "endpoints": {}}
        self.forward: dict[str, tuple[str, ...]] = {}
        self.backward: dict[str, str] = {}

    def replace(self, kind: str, objects: list[dict[str, Any]]) -> None:
        with self._lock:
            self._objects[kind] = {_key(found): found for found in objects}
            self._publish()

    def change(self, kind: str, event: str, found: dict[str, Any]) -> None:
        with self._lock:
            if event == "DELETED":
                self._objects[kind].pop(_key(found), None)
            else:
                self._objects[kind][_key(found)] = found
            self._publish()

    def _publish(self) -> None:
        forward: dict[str, set[str]] = {}
        backward: dict[str, str] = {}
        for (namespace, name), service in self._objects["services"].items():
            full = f"{name}.{namespace}.svc.{ZONE}"
            forward.setdefault(full, set())
            address = service["spec"].get("clusterIP")
            if address and address != "None":
                forward[full].add(address)
                backward[_reversed(address)] = full
                continue
            for ip, host in _endpoints(self._objects["endpoints"].get((namespace, name), {})):
                forward[full].add(ip)
                forward.setdefault(f"{host}.{full}", set()).add(ip)
                backward[_reversed(ip)] = f"{host}.{full}"
        # A name that others lie below exists too, though it has no address.
        for full in list(forward):
            for parent in itertools.accumulate(reversed(full.split(".")), lambda below, word: f"{word}.{below}"):
                forward.setdefault(parent, set())
        self.forward = {name: tuple(sorted(addresses)) for name, addresses in forward.items()}
        self.backward = backward


def _endpoints(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(address, host name). Only ready addresses are published; with publishNotReadyAddresses all are among these."""
    for subset in found.get("subsets") or ():
        for address in subset.get("addresses") or ():
            yield address["ip"], address.get("hostname") or address["ip"].replace(".", "-")


def _key(found: dict[str, Any]) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]


def _reversed(address: str) -> str:
    return ".".join(reversed(address.split("."))) + ".in-addr.arpa"


class Resolver(BaseResolver):
    def __init__(self, names: Names) -> None:
        self._names = names

    def resolve(self, request: DNSRecord, handler: DNSHandler) -> DNSRecord:
        reply = request.reply()
        asked = str(request.q.qname).rstrip(".").lower()
        kind = QTYPE[request.q.qtype]
        if asked in self._names.backward:
            if kind in ("PTR", "ANY"):
                reply.add_answer(RR(request.q.qname, QTYPE.PTR, rdata=PTR(self._names.backward[asked]), ttl=TTL))
        elif asked in self._names.forward:
            if kind in ("A", "ANY"):
                for address in self._names.forward[asked]:
                    reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(address), ttl=TTL))
        else:
            reply.header.rcode = RCODE.NXDOMAIN
        if handler.protocol == "udp" and len(reply.pack()) > LONGEST:
            reply = request.reply()
            reply.header.tc = 1  # the asker comes again over TCP
        return reply


def follow(client: Client, kind: str, names: Names) -> None:
    """For ever: lists, then watches; after any trouble once more from the start."""
    path = f"/api/v1/{kind}"
    while True:
        try:
            listed = client.get(path)
            names.replace(kind, listed["items"])
            version = listed["metadata"]["resourceVersion"]
            while True:
                for event in client.watch(path, version):
                    if event["type"] == "ERROR":
                        raise Refused(path, event["object"].get("code", 0), str(event["object"]))
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        names.change(kind, event["type"], event["object"])
        except Exception as trouble:
            print(f"{kind}: {trouble!r}", flush=True)
            time.sleep(0.2)


class Quick(socketserver.ThreadingUDPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


class Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class Quiet:
    """dnslib logs every question."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def main(kubeconfig: str, address: str) -> None:
    names = Names()
    client = Client(Path(kubeconfig))
    for kind in ("services", "endpoints"):
        threading.Thread(target=follow, args=(client, kind, names), daemon=True).start()
    for server, tcp in ((Quick, False), (Tcp, True)):
        DNSServer(
            Resolver(names), address=address, port=53, tcp=tcp, server=server, logger=Quiet(), handler=DNSHandler
        ).start_thread()
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
