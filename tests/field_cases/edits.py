"""Small changes to the evidence of a simulated node; each of them refuses to change nothing."""

import json
import re

XML, TEXT = "nvidia-smi_-q_-x", "nvidia-smi_-q"
NVLINK, LSPCI, SYSFS = "nvidia-smi_nvlink_-s", "lspci_-nnvvv", "sys/bus/pci/links"
JOURNAL = "journalctl_-k_-b_--no-pager_-o_short-iso"
SICK = 4  # the GPU that the simulator's faults befall, too


def together(*changes):
    """All of these changes, one after the other."""

    def edit(files):
        for change in changes:
            change(files)

    return edit


def replaced(name, old, new, count=0):
    """A pattern replaced in one output, at all places or at the first `count`."""

    def edit(files):
        files[name], done = re.subn(old.encode(), new.encode(), files[name], count=count)
        assert done, f"{name} does not hold {old!r}"

    return edit


def given(name, text):
    """One output in full, a new one or in the place of what was there."""

    def edit(files):
        files[name] = text if isinstance(text, bytes) else text.encode()

    return edit


def left_out(*names):
    """Outputs that nobody recorded."""

    def edit(files):
        for name in names:
            del files[name]

    return edit


def failed(name, status, words="", error=""):
    """A command that printed some words and exited with an error."""

    def edit(files):
        assert name in files, name
        files[name] = words.encode()
        files[f"{name}.rc"] = str(status).encode()
        if error:
            files[f"{name}.err"] = error.encode()

    return edit


def smi(old, new, gpu=SICK, count=0):
    """A pattern replaced in the driver's document, of one GPU or (None) of all; the other form of it is left out."""

    def edit(files):
        head, *gpus = re.split(rb"(?=<gpu id=)", files[XML])
        places = range(len(gpus)) if gpu is None else [gpu]
        for place in places:
            gpus[place], done = re.subn(old.encode(), new.encode(), gpus[place], count=count, flags=re.DOTALL)
            assert done, f"the document does not hold {old!r} for GPU {place}"
        files[XML] = head + b"".join(gpus)
        files.pop(TEXT, None)

    return edit


def tag(name, value, gpu=SICK, within=""):
    """One element of the driver's document of one GPU, or of a group of elements in it."""
    start = rf"(<{within}>(?:(?!</{within}>).)*?)" if within else "()"
    return smi(rf"{start}<{name}>[^<]*</{name}>", rf"\g<1><{name}>{value}</{name}>", gpu, count=1)


def logged(*lines, times=1):
    """Lines at the end of the kernel log; `{}` counts them."""

    def edit(files):
        stamped = (
            f"[{93000 + number // 1000:>6}.{number % 1000:03}000] {line.format(number)}\n"
            for number in range(times)
            for line in lines
        )
        files["dmesg"] += "".join(stamped).encode()

    return edit


def document(name, change):
    """A JSON output changed in place."""

    def edit(files):
        whole = json.loads(files[name])
        before = json.dumps(whole)
        change(whole)
        assert json.dumps(whole) != before
        files[name] = json.dumps(whole).encode()

    return edit


def measured(gpu=None, dtype="float16", size=8192, **values):
    """Results of the matmul probe changed: of one GPU or of all, of one type and size."""

    def change(whole):
        for result in whole["results"]:
            on_it = gpu is None or result["device"] == f"cuda:{gpu}"
            if on_it and (result["dtype"], result["size"]) == (dtype, size):
                result.update(values)

    return document("matmul", change)


def copied(gpu, what, peer=None, **values):
    """Copies of one GPU changed: of one kind, and where it is to a peer, to that one or to all."""

    def change(whole):
        for result in whole["results"]:
            if (result["device"], result["copy"]) == (f"cuda:{gpu}", what) and peer in (None, result["peer_device"]):
                result.update(values)

    return document("copies", change)
