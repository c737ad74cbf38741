"""A stand-in for perftest's ib_write_bw 6: its options, its order of events, and its words; nothing is transferred.

The environment tells how it behaves: PLAIN (built without CUDA), and BEHAVES, JSON of `DEVICE` or `DEVICE:MEMORY` to
one of `refused`, `deaf` (a server that never listens), `hung` (no answer while it runs), `stubborn` (the same, and deaf
to TERM), `broken` (a completion with an error), `absent` (no such device), `elsewhere` (takes another GPU), or a rate
in Gb/s.
It logs each start, with its processors, to the file STARTS names.
"""

import argparse
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

RULE = "-" * 87
PLAIN = bool(os.environ.get("PLAIN"))
USUAL = ["-d, --ib-dev=<dev>", "-D, --duration", "--report_gbits", "--source_ip", "--force-link=<value>"]
OF_CUDA = ["--use_cuda=<cuda device id>", "--use_cuda_dmabuf"]
GPUS = os.environ.get("GPUS", "1B:00 3E:00").split()


def say(text):
    print(text)  # kept back until the end, as a pipe does


def complain(*lines):
    for line in lines:
        print(line, file=sys.stderr, flush=True)
    sys.exit(1)


def options():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for short in "dipsqDf":
        parser.add_argument(f"-{short}")
    parser.add_argument("-F", action="store_true")
    for name in ("report_gbits", "use_cuda_dmabuf"):
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("use_cuda", "source_ip"):
        parser.add_argument(f"--{name}")
    parser.add_argument("server", nargs="?")
    found, strange = parser.parse_known_args()
    if strange or (PLAIN and found.use_cuda):
        complain(f"ib_write_bw: unrecognized option '{(strange or ['--use_cuda'])[0]}'", " Invalid Command or flag.")
    assert found.report_gbits
    assert (found.F, found.s, found.q) == (True, "8388608", "2")
    assert int(found.D) > 2 * int(found.f), "please check that DURATION > 2*MARGIN"
    order = [word.partition("=")[0] for word in sys.argv]
    if found.use_cuda_dmabuf and order.index("--use_cuda") > order.index("--use_cuda_dmabuf"):
        complain("CUDA DMA-BUF cannot be used without CUDA", " Parser function exited with Error")
    return found


def connection(found, behaves):
    if found.server:
        try:
            return socket.create_connection((found.server, int(found.p)), timeout=5)
        except OSError:
            complain(
                f"Couldn't connect to {found.server}:{found.p}",
                "Unable to open file descriptor for socket connection",
                " Unable to init the socket connection",
            )
    say(
        "\n************************************\n* Waiting for client to connect... *\n************************************"
    )
    if behaves == "deaf":
        time.sleep(600)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((found.source_ip or "", int(found.p)))
        listener.listen(1)
        return listener.accept()[0]


def take_gpu_memory(index, behaves):
    say("initializing CUDA\nListing all CUDA devices in system:")
    for number, at in enumerate(GPUS):
        say(f"CUDA device {number}: PCIe address is {at}")
    if index >= len(GPUS):
        complain(f"No such device ID ({index}) exists in system", "Couldn't init GPU context: 1")
    picked = (index + 1) % len(GPUS) if behaves == "elsewhere" else index
    say(f"\nPicking device No. {picked}\n[pid = {os.getpid()}, dev = {picked}] device name = [NVIDIA H100 80GB HBM3]")
    say("creating CUDA Ctx\nmaking it the current CUDA Ctx\nCUDA device integrated: 0")
    say("allocated GPU buffer of a 33554432 address at 0x7f44d4000000 for type CUDA_MEM_DEVICE")


def introduce():
    """What it says of itself; None where it was asked to transfer."""
    if "--version" in sys.argv:
        say("Version: 6.20")
        return 0
    if "--help" in sys.argv:
        say("Usage:\n  ib_write_bw            start a server and wait for connection\n\nOptions:")
        for option in USUAL + ([] if PLAIN else OF_CUDA):
            say(f"      {option}  what it does")
        return 1  # as perftest does
    return None


def log_start(found, memory):
    start = {"pid": os.getpid(), "device": found.d, "memory": memory, "client": bool(found.server)}
    start |= {"cpus": sorted(os.sched_getaffinity(0)), "at": time.time(), "gpu": found.use_cuda}
    start |= {"order": os.environ.get("CUDA_DEVICE_ORDER"), "visible": os.environ.get("CUDA_VISIBLE_DEVICES")}
    with Path(os.environ["STARTS"]).open("a") as log:
        log.write(f"{json.dumps(start)}\n")


def transfer(found, peer, behaves):
    say(f"{RULE}\n                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : {found.d}")
    say(f"{RULE}\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
    if found.server:
        if behaves in ("hung", "stubborn"):
            time.sleep(600)
        if behaves == "broken":
            complain(" Completion with error at client", " Failed status 12: wr_id 0 syndrom 0x81", "scnt=128, ccnt=0")
        time.sleep(0.2)
        peer.sendall(b"done")
    elif not peer.recv(4):
        complain(
            "ethernet_read_keys: Couldn't read remote address", " Failed to exchange data between server and clients"
        )
    rate = 392.84 if isinstance(behaves, str) else behaves
    say(
        f" 8388608    {int(rate * 30):<10}       {0:<7.2f}            {rate:<7.2f}\t\t     {rate / 67108.864:<7.6f}\n{RULE}"
    )


def main():
    status = introduce()
    if status is not None:
        return status
    found = options()
    memory = "cuda-dmabuf" if found.use_cuda_dmabuf else "cuda" if found.use_cuda else "host"
    known = json.loads(os.environ.get("BEHAVES", "{}"))
    behaves = known.get(f"{found.d}:{memory}", known.get(found.d, 392.84))
    log_start(found, memory)
    if behaves == "absent":
        complain(f"IB device {found.d} not found", " Unable to find the Infiniband/RoCE device")
    if memory != "host":
        print("Perftest doesn't supports CUDA tests with inline messages: inline size set to 0", file=sys.stderr)
    with connection(found, behaves) as peer:
        if memory != "host":
            take_gpu_memory(int(found.use_cuda), behaves)
        if behaves == "refused":
            complain(
                "Couldn't allocate MR with error=14",
                "failed to create mr",
                "Failed to create MR",
                " Couldn't create IB resources",
            )
        if behaves == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        transfer(found, peer, behaves)
    return 0


if __name__ == "__main__":
    sys.exit(main())
