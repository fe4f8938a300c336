"""Mutations of model files: functions of (file, random source, another file).

Blind mutations change bytes, which the checksum detects. The others recompute sizes and checksum, so that the changes
reach the validation of the contents.
"""

import hashlib
import json
import struct
from copy import deepcopy
from functools import cache

MAGIC, PREFIX_BYTES, ALIGNMENT = b"\x89MXMG\r\n\x1a", 64, 64
DTYPES = [
    "|b1",
    "|i1",
    "|u1",
    "<i2",
    "<u2",
    "<i4",
    "<u4",
    "<i8",
    "<u8",
    "<f4",
    "<f8",
    "<U1",
    "<U2",
    "|O8",
    ">f8",
    "<c16",
]
DTYPES += ["<U0", "<U99999999", "|V8", "<M8[s]", "", None, 8]
SIDES = [0, 1, 2, 3, 5, 7, 64, -1, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, 2**70, 1.0, None, True]
NUMBERS = [-1, -128, 0, 1, 2, 3, 127, 2**15, 2**31 - 1, -(2**31), 2**62, -(2**62)]
UNEXPECTED_VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, -0.0, 1e308, 2**31, 2**63, 10**400, "", "x", "precomputed", "linear", "ovo",
    [], {}, [0], {"float": "nan"}, {"float": "inf"}, {"float": "x"}, {"tuple": []}, {"tuple": [3, 2]}, {"dict": []},
    {"dict": [[[], 1]]}, {"dict": [[{"array": 0}, 1]]}, {"array": 0}, {"array": 1}, {"array": 2}, {"array": 3},
    {"array": -1}, {"array": True}, {"array": 10**6}, {"scalar": 0}, {"objects": []}, {"objects": ["a", None]},
    {"objects": [[]]}, {"Status": "CONVERGED"}, {"Status": "value"}, {"Gaussian": {}}, {"Gaussian": {"gamma": -1.0}},
    {"Gaussian": {"gamma": {"float": "nan"}}}, {"Gaussian": {"gamma": 10**300}}, {"Gaussian": {"gamma": "x"}},
    {"Polynomial": {"degree": 2**40}}, {"Polynomial": {"degree": 10**9}}, {"Polynomial": {"degree": 2.5}},
    {"Linear": {}}, {"Sum": {}},
    {"Sum": {"first": {"Linear": {}}, "second": {"Linear": {}}}}, {"Scaled": {"factor": 0, "kernel": {"Linear": {}}}},
    {"Product": {"first": {"Linear": {}}, "second": 3}}, {"PairwiseSolver": {}}, {"BlockSolver": {"working_set": 1}},
    {"StoppingRule": {"violation": None}}, {"Counters": {"seconds": "long"}}, {"TrainedModel": {}}, {"Certificate": {}},
    {"FunctionKernel": {"function": "print"}}, {"__class__": {}}, {"csr": {}}, {"os.system": "true"},
    {"csr": {"type": "matrix", "shape": [1, 1], "data": 0, "indices": 1, "indptr": 2}},
]  # fmt: skip


def split(file):
    """Return header and arrays of a file, both as bytes."""
    end = PREFIX_BYTES + struct.unpack_from("<Q", file, 16)[0]
    return file[PREFIX_BYTES:end], file[end:]


@cache
def values_of(file):
    """Return all values in the header of a file."""
    header = json.loads(split(file)[0])
    return [follow(header, path) for path in all_paths(header)]


@cache
def table_of(file):
    """Return the table of arrays of a file."""
    return json.loads(split(file)[0])["arrays"]


def join(header, arrays, version=2):
    """Return a file with valid sizes and checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    start = struct.pack("<8sIIQQ", MAGIC, version, 0, len(text), PREFIX_BYTES + len(text) + len(arrays))
    return start + hashlib.sha256(start + text + arrays).digest() + text + arrays


def all_paths(value, path=()):
    """Return the paths to all values in a header."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += all_paths(value[key], (*path, key))
    return found


def follow(value, path):
    """Return the value at a path."""
    for key in path:
        value = value[key]
    return value


def flip_bytes(file, chance, other):
    damaged = bytearray(file)
    for _ in range(chance.choice([1, 1, 1, 2, 8])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def cut_off(file, chance, other):
    return file[: chance.randrange(len(file))] + bytes(chance.choice([0, 0, 0, 1, 64]))


def splice(file, chance, other):
    cut, resume = chance.randrange(len(file)), chance.randrange(len(other))
    return file[:cut] + other[resume:]


def flip_header(file, chance, other):
    """Change random characters of the header; sizes and checksum are valid."""
    text, arrays = split(file)
    text = bytearray(text)
    end = len(text.rstrip())
    for _ in range(chance.choice([1, 1, 2, 4])):
        text[chance.randrange(end)] = chance.choice(b'0123456789-.eE"[]{},:\\ntruflasxAZ\x00\xff')
    return join(bytes(text), arrays)


def flip_arrays(file, chance, other):
    """Change bytes or numbers of arrays; sizes and checksum are valid."""
    text, arrays = split(file)
    arrays = bytearray(arrays)
    for _ in range(chance.choice([1, 1, 2, 4, 64])):
        entry = chance.choice(table_of(file))
        if chance.random() < 0.5 or entry["dtype"] not in ("<i4", "<i8", "<f8"):
            arrays[chance.randrange(len(arrays))] ^= 1 << chance.randrange(8)
            continue
        size, letter = {"<i4": (4, "<i"), "<i8": (8, "<q"), "<f8": (8, "<d")}[entry["dtype"]]
        count = 1
        for side in entry["shape"]:
            count *= side
        if count:
            where, number = entry["offset"] + size * chance.randrange(count), chance.choice(NUMBERS)
            struct.pack_into(letter, arrays, where, max(-(2**31), min(number, 2**31 - 1)) if size == 4 else number)
    return join(text, bytes(arrays))


def edit_header(file, chance, other):
    """Replace, remove, rename or exchange values of the header; sizes and checksum are valid."""
    text, arrays = split(file)
    header = json.loads(text)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        path = chance.choice(all_paths(header))
        holder, key = follow(header, path[:-1]), path[-1]
        kind = chance.randrange(6)
        if kind == 0:
            holder[key] = deepcopy(chance.choice(UNEXPECTED_VALUES))
        elif kind in (1, 2):
            holder[key] = deepcopy(chance.choice(values_of((file, other)[kind - 1])))
        elif kind == 3:
            del holder[key]
        elif kind == 4 and isinstance(holder, dict):
            holder[chance.choice([*holder, "x", "predict", "__class__", "_check_samples"])] = holder.pop(key)
        else:
            nested = holder[key]
            for _ in range(chance.choice([1, 2, 40, 80])):
                nested = chance.choice([[nested], {"tuple": [nested]}])
            holder[key] = nested
    return join(header, arrays)


def edit_table(file, chance, other):
    """Change entries of the table of arrays, often keeping the number of bytes; sizes and checksum are valid."""
    text, arrays = split(file)
    header = json.loads(text)
    table = header["arrays"]
    for _ in range(chance.choice([1, 1, 2])):
        entry, kind = chance.choice(table), chance.randrange(8)
        if kind == 0:
            entry["dtype"] = chance.choice(DTYPES)
        elif kind == 1:
            same = [dtype for dtype in DTYPES if isinstance(dtype, str) and dtype[-1:] == str(entry["dtype"])[-1:]]
            entry["dtype"] = chance.choice([*same, "<i8", "<f8"])
        elif kind == 2 and entry["shape"]:
            entry["shape"][chance.randrange(len(entry["shape"]))] = chance.choice(SIDES)
        elif kind == 3:
            entry["shape"] = chance.choice([entry["shape"][::-1], [*entry["shape"], 1], [1, *entry["shape"]], []])
        elif kind == 4:
            entry["order"] = chance.choice(["C", "F", "K", None])
        elif kind == 5:
            entry["offset"] = chance.choice([*SIDES, chance.choice(table)["offset"], 128])
        elif kind == 6:
            first, second = chance.randrange(len(table)), chance.randrange(len(table))
            table[first], table[second] = table[second], table[first]
        else:
            # Exchange two arrays, often of the same type and different sizes.
            text = json.dumps(header["fitted"])
            first, second = chance.randrange(len(table)), chance.randrange(len(table))
            header["fitted"] = json.loads(
                text.replace(f'"array": {first}}}', '"array": -1}')
                .replace(f'"array": {second}}}', f'"array": {first}}}')
                .replace('"array": -1}', f'"array": {second}}}')
            )
    if chance.random() < 0.5:
        _recompute_offsets(table)
    return join(header, arrays)


def _recompute_offsets(table):
    """Recompute offsets from shapes, where these are numbers."""
    sizes = {
        "b1": 1,
        "i1": 1,
        "u1": 1,
        "i2": 2,
        "u2": 2,
        "i4": 4,
        "u4": 4,
        "f4": 4,
        "U1": 4,
        "i8": 8,
        "u8": 8,
        "f8": 8,
        "U2": 8,
    }
    end = 0
    for entry in table:
        size = sizes.get(str(entry["dtype"])[1:], 8)
        for side in entry["shape"]:
            size *= side if isinstance(side, int) else 1
        entry["offset"] = -(-end // ALIGNMENT) * ALIGNMENT
        end = entry["offset"] + size


#: Number of files for each mutation.
MUTATIONS = {
    flip_bytes: 34_000,
    cut_off: 15_000,
    splice: 15_000,
    flip_header: 20_000,
    flip_arrays: 5_000,
    edit_header: 7_000,
    edit_table: 6_000,
}
