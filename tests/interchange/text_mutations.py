"""Mutations of text model files: functions of (lines, random source, lines of another file)."""

WORDS = [
    *b"nan -nan inf -inf infinity 1e999 -1e999 1e-999 0x10 1_0 1e . - + : 1: :1 1:2:3 0:1 -1:1 1,5 1d5".split(),
    *b"2147483647:1 2147483648:1 9999999999:1 99999999999:1 0 1 -1 2 3 5 1.5 2147483647 2147483648 1000000".split(),
    *b"4294967296 99999999999999999999 SV w label rho nr_class total_sv nr_sv probA probB gamma degree coef0".split(),
    *b"c_svc nu_svc one_class epsilon_svr linear rbf polynomial sigmoid precomputed MCSVM_CS L2R_LR # empty#".split(),
    *(b"ONECLASS_SVM", b"", b" ", b"\t", b"\r", b"# 1", b"9" * 5000, b"1" * 400),
    *(b"\x00", b"\xff", b"\xc2\xb2", b"\xd9\xa3"),
]


def flip_bytes(lines, chance, other):
    text = bytearray(b"\n".join(lines))
    for _ in range(chance.choice([1, 1, 1, 2, 8])):
        text[chance.randrange(len(text))] = chance.choice(b"0123456789-+.eE: \n\t#xn\x00\xff")
    return bytes(text)


def cut_off(lines, chance, other):
    text = b"\n".join(lines)
    return text[: chance.randrange(len(text))]


def splice(lines, chance, other):
    text, rest = b"\n".join(lines), b"\n".join(other)
    return text[: chance.randrange(len(text))] + rest[chance.randrange(len(rest)) :]


def change_lines(lines, chance, other):
    """Remove, repeat, exchange or borrow whole lines."""
    lines = list(lines)
    for _ in range(chance.choice([1, 1, 2, 3])):
        k, kind = chance.randrange(len(lines)), chance.randrange(5)
        if kind == 0 and len(lines) > 1:
            del lines[k]
        elif kind == 1:
            lines.insert(chance.randrange(len(lines)), lines[k])
        elif kind == 2:
            j = chance.randrange(len(lines))
            lines[j], lines[k] = lines[k], lines[j]
        elif kind == 3:
            lines.insert(k, chance.choice(other))
        else:
            lines[k] = chance.choice([b"", b" ", *other])
    return b"\n".join(lines) + b"\n"


def change_words(lines, chance, other):
    """Replace, remove or add words of lines without changing counts."""
    lines = list(lines)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        k = chance.randrange(min(len(lines), 16)) if chance.random() < 0.7 else chance.randrange(len(lines))
        words = lines[k].split(b" ")
        j, kind = chance.randrange(len(words)), chance.randrange(4)
        if kind < 2:
            words[j] = chance.choice(WORDS)
        elif kind == 2:
            del words[j]
        else:
            words.insert(j, chance.choice([*WORDS, words[j]]))
        lines[k] = b" ".join(words)
    return b"\n".join(lines) + b"\n"


#: Number of files for each mutation.
MUTATIONS = {flip_bytes: 10_000, cut_off: 25_000, splice: 30_000, change_lines: 20_000, change_words: 15_000}
