"""Meet through the variables that PyTorch's env:// reads, with sockets instead of PyTorch.

With PyTorch the whole file is `torch.distributed.init_process_group("gloo")`: the variables are the same.
"""

import os
import socket
import time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
me = f"rank {rank} (local {os.environ['LOCAL_RANK']}) on {socket.gethostname()}"


def connect(deadline: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(address, timeout=10)
        except OSError:  # rank 0 may not be listening yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if rank == 0:
    with socket.create_server(("", address[1]), backlog=size) as server:
        server.settimeout(60)
        peers = [server.accept()[0] for _ in range(size - 1)]
    present = sorted([me, *(peer.makefile().readline().strip() for peer in peers)])
    for peer in peers:
        peer.sendall(f"{len(present)}\n".encode())
        peer.close()
    print(f"All {size} met at {address[0]}:{address[1]}:", *present, sep="\n  ", flush=True)
else:
    with connect(time.monotonic() + 60) as leader, leader.makefile("rw") as stream:
        stream.write(f"{me}\n")
        stream.flush()
        met = int(stream.readline())
    print(f"{me} met {met - 1} others", flush=True)
