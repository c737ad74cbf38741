"""Mutations of real outputs: what a broken tool, a cut line, a hostile node or a careless editor makes of them.

`mutated(rng, seeds)` gives one document. The same generator state and seeds give the same bytes.
"""

import json
import re

RUN = (10, 300, 5_000, 60_000)  # how long a run of one character gets
MOST = 2**20  # a document that grew beyond this is cut
DIGITS = ("9" * 400, "9" * 5_000, "9" * 100_000, "-1", "-0", "0", "00", "1e999", "1e-999", "4294967296", "18446744073709551616",
          "0x" + "f" * 5_000, "NaN", "Infinity", "-inf", "1_000", "1.5.5", "+5", " 5", "\u0665\u0665", "\xb2", "\uff15", "0.0000001", "1e5")  # fmt: skip
WORDS = ("N/A", "[N/A]", "ERR!", "Unknown Error", "[Unknown Error]", "None", "", " ", "null", "true", "Requested functionality has been deprecated",
         "GPU is lost", "Not Supported", "\x00", "\x1b[31m", "\u202e", "\u2028", "\x85", "\x0b", "\x0c", "\ud800", "\ufeff", "\xdf" * 40, "\u0130", "<b>", "&amp;", "&x;",
         "]]>", "<!--", "<![CDATA[", "%s%n", "{}", "[]", '"', "'", "\\", ":", "=", "|", "\t", "\r", "(", ")", "[", "*", "../../etc/passwd")  # fmt: skip
RUNS = (b" ", b"\t", b"0", b"9", b"a", b"A", b":", b"-", b".", b"(", b"[", b"<", b"&", b"|", b"+", b"\r", b"\n", b"\x00", b"\xff", b"\\", b'"', b"0:",
        b"a ", b" \t", b"a=", b"\r\n", b"0.", b"NVRM: ", b"Xid ", b"\xd9\xa5")  # fmt: skip
_NUMBER = re.compile(rb"\d+")
_WORD = re.compile(rb"[^\s<>=:,\"]+")
_VALUES = (None, True, False, 0, -1, 1e308, float("nan"), float("inf"), 10**400, "", "9" * 5000, "\ud800", "\u202e", [], {}, [[]], {"": None}, [None], "x" * 70_000,
           -(2**63), 0.1, {"value": 1}, ["gpu0"])  # fmt: skip


def mutated(rng, seeds):
    """One to four mutations of one of the seeds."""
    data = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(_MUTATIONS)(rng, data, seeds)[:MOST]
    return data


def flooded(rng, seeds, size, number):
    """A document of about `size` bytes that no tool prints: what a parser that is not linear hangs on.

    `FLOODS` numbers in a row go through every form with every piece.
    """
    document = max(seeds, key=len) if rng.randrange(2) else rng.choice(seeds)
    lines = document.splitlines(keepends=True) or [b"\n"]
    line, piece, form = rng.choice(lines), RUNS[number % len(RUNS)], _FORMS[number // len(RUNS) % len(_FORMS)]
    many = piece * (size // len(piece))
    at, within = rng.randrange(len(lines)), _place(rng, line)
    made = {
        "inside a line": lambda: b"".join(lines[:at]) + line[:within] + many + line[within:] + b"".join(lines[at:]),
        "after a half": lambda: b"".join(lines[: len(lines) // 2]) + many + b"\n",
        "alone": lambda: many,
        "nested": lambda: list(_NESTS.values())[number % len(_NESTS)](size // 8),
        "one line": lambda: line * (size // len(line)) + many[:1],
        "lines in one": lambda: line.rstrip(b"\r\n") * (size // len(line)) + many[:9],
        "documents": lambda: (document or b"\n") * (size // max(len(document), 1) + 1) + many[:1],
        "between lines": lambda: (many[: size // max(len(lines), 1)] + b"\n").join(lines),
    }
    return made[form]()


_FORMS = ("after a half", "inside a line", "between lines", "alone", "one line", "nested", "lines in one", "documents")
FLOODS = len(RUNS) * len(_FORMS)
_NESTS = {
    "json": lambda n: b"[" * n + b"]" * n,
    "json objects": lambda n: b'{"a":' * n + b"1" + b"}" * n,
    "json in a table": lambda n: b'{"probe": "matmul", "schema": 1, "results": ' + b"[" * n + b"]" * n + b"}",
    "xml": lambda n: b"<nvidia_smi_log>" + b"<gpu>" * n + b"</gpu>" * n + b"</nvidia_smi_log>",
    "xml attributes": lambda n: b"<nvidia_smi_log " + b"".join(b'a%d="1" ' % i for i in range(n // 3)) + b"></nvidia_smi_log>",
    "entities": lambda n: b"<nvidia_smi_log>" + b"&amp;" * n + b"</nvidia_smi_log>",
    "indents": lambda n: b"".join(b" " * i + b"a:\n" for i in range(int((2 * n) ** 0.5) + 1)),
}  # fmt: skip


def _place(rng, data):
    return rng.randrange(len(data) + 1)


def _flip(rng, data, _):
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 40)) if data else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(rng, data, _):
    return data[: _place(rng, data)]


def _hole(rng, data, _):
    start = _place(rng, data)
    return data[:start] + data[start + rng.choice((1, 1, 8, 200, 5000)) :]


def _lines(rng, data, seeds):
    """Lines doubled, dropped, moved, or taken from another document."""
    lines = data.splitlines(keepends=True) or [b""]
    at, count = rng.randrange(len(lines)), rng.choice((1, 1, 3, 20))
    taken = lines[at : at + count]
    how = rng.randrange(5)
    if how == 0:
        lines[at:at] = taken * rng.choice((1, 2, 50))
    elif how == 1:
        del lines[at : at + count]
    elif how == 2:
        del lines[at : at + count]
        lines[(to := rng.randrange(len(lines) + 1)) : to] = taken
    elif how == 3:
        other = rng.choice(seeds).splitlines(keepends=True) or [b""]
        begin = rng.randrange(len(other))
        lines[at:at] = other[begin : begin + count]
    else:
        lines[at] = lines[at].rstrip(b"\n") + rng.choice(
            (b"", b"\r\n", b"\n\n", b"\r", "\u2028".encode(), b"\x85", b"\x0c\n")
        )
    return b"".join(lines)


def _splice(rng, data, seeds):
    other = rng.choice(seeds)
    return data[: _place(rng, data)] + other[_place(rng, other) :]


def _run(rng, data, _):
    at, piece = _place(rng, data), rng.choice(RUNS)
    return data[:at] + piece * rng.choice(RUN) + data[at:]


def _one_of(rng, pattern, data, texts):
    found = list(pattern.finditer(data[: 2**17]))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(texts).encode("utf-8", "surrogatepass") + data[match.end() :]


def _number(rng, data, _):
    return _one_of(rng, _NUMBER, data, DIGITS)


def _word(rng, data, _):
    return _one_of(rng, _WORD, data, WORDS)


def _swap(rng, data, _):
    """Two words of the document change places."""
    found = list(_WORD.finditer(data[: 2**17]))
    if len(found) < 2:
        return data
    one, two = sorted(rng.sample(found, 2), key=lambda match: match.start())
    return data[: one.start()] + two[0] + data[one.end() : two.start()] + one[0] + data[two.end() :]


def _insert(rng, data, _):
    at = _place(rng, data)
    return data[:at] + rng.choice(WORDS).encode("utf-8", "surrogatepass") + data[at:]


def _encoded(rng, data, _):
    how = rng.randrange(5)
    if how == 0:
        return b"\xef\xbb\xbf" + data
    if how == 1:
        return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-32")), "replace")
    if how == 2:
        return data.replace(b"\n", b"\r\n")
    if how == 3:
        return data.swapcase()
    return data.replace(b" ", rng.choice(("\xa0", "\u2003", "\x00")).encode())


def _nest(rng, data, _):
    at, nest = _place(rng, data), rng.choice(list(_NESTS.values()))
    return data[:at] + nest(rng.choice((3, 200, 2_000, 20_000))) + data[at:]


def restructured(rng, data, seeds=()):
    """A JSON document with one value replaced, dropped, doubled or named anew; for other documents a number."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _number(rng, data, seeds)
    spots = []

    def walk(value):
        for key, item in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            spots.append((value, key))
            walk(item)

    try:
        walk(document)
        for parent, key in rng.sample(spots, min(len(spots), rng.choice((1, 1, 2, 5)))):
            how = rng.randrange(6)
            if how < 4 or isinstance(key, int):
                parent[key] = rng.choice(_VALUES)
            elif key in parent:
                value = parent.pop(key)
                if how == 4:
                    parent[rng.choice(("", "\ud800", key + " ", key.upper()))] = value
        return json.dumps(document, ensure_ascii=bool(rng.randrange(4)), indent=rng.choice((None, 1))).encode(
            "utf-8", "surrogatepass"
        )
    except (
        RecursionError,
        ValueError,
        IndexError,
    ):  # nested too deep, digits beyond what Python prints, a list that shrank
        return _number(rng, data, seeds)


_MUTATIONS = (_flip, _cut, _hole, _lines, _lines, _splice, _run, _number, _number, _word, _word, _swap, _insert, _encoded, _nest, restructured, restructured)  # fmt: skip
