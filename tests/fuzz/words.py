"""Words of the formats: dictionaries that mutations insert."""

from __future__ import annotations

from maxmargin.search.journal import FORMAT

from .seeds import SEPARATOR

NUMBERS = (b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e309", b"5e-324", b"0", b"-0", b"2147483647", b"2147483648",
           b"4294967297", b"9223372036854775808", b"999999999999999999", b"0x10", b"1_0", b"-1", b"0.1", b"1e999999999",
           "\u0663".encode())  # fmt: skip

LIBSVM_WORDS = (*NUMBERS, b":", b" ", b"\n", b"\r\n", b"\t", b"#", b"qid:", b"1:", b"2147483647:", b"\xef\xbb\xbf")
CSV_WORDS = (*NUMBERS, b",", b";", b"\t", b'"', b'""', b"\n", b"\r\n", b"label", b"?", b"NA", b"\x00", b"\xff",
             b"\xef\xbb\xbf")  # fmt: skip
NPY_WORDS = (b"\x93NUMPY\x01\x00", b"'descr': '<f8'", b"'|O'", b"'<U9'", b"'<i8'", b"'<c16'", b"'fortran_order': True",
             b"'shape': (2, 3)", b"'shape': (9999999999999,)", b"X.npy\n", b"y.npy\n", b"data.npy\n", b"indices.npy\n",
             b"indptr.npy\n", b"shape.npy\n", b"format.npy\n", b"csr", b"csc", SEPARATOR)  # fmt: skip
MODEL_WORDS = (
    *NUMBERS,
    b"svm_type c_svc\n",
    b"kernel_type rbf\n",
    b"kernel_type precomputed\n",
    b"gamma ",
    b"degree ",
    b"coef0 ",
    b"nr_class ",
    b"total_sv ",
    b"rho ",
    b"label ",
    b"nr_sv ",
    b"probA ",
    b"probB ",
    b"SV\n",
    b"prob_density_marks ",
    b"solver_type ",
    b"bias ",
    b"nr_feature ",
    b"w\n",
    b"MCSVM_CS",
    b"#",
    b":",
)
JSON_WORDS = (*NUMBERS, b"{", b"}", b"[", b"]", b",", b":", b'"', b"null", b"true", b"NaN", b"Infinity", b'{"array":0}',
              b'{"float":"nan"}', b'{"tuple":[]}', b'"<f8"', b'"|O"', b'"shape":[', b'"offset":', b"\\u0000", b"\n",
              b"2" * 400)  # fmt: skip
JOURNAL_WORDS = (
    *JSON_WORDS,
    b'"C": ',
    b'"gamma": ',
    b'"fold": ',
    b'"scores": {"test_score": ',
    b'"fit_seconds": ',
    FORMAT.encode(),
)
FILE_WORDS = (*LIBSVM_WORDS, *CSV_WORDS, b"\x1f\x8b\x08\x00", b"BZh9", b"\xfd7zXZ\x00", b"PK\x03\x04", b"PAR1")
RANGE_WORDS = (*NUMBERS, b"x\n", b"y\n", b" ", b"\n")
