"""The CUDA sources compile for all supported generations of GPUs, on computers without one."""

import ctypes
from importlib.metadata import PackageNotFoundError, files

import pytest

from maxmargin.cuda.modules import source_text

VARIANTS = [
    *(
        ("products", {"FUNCTION": f, "DEGREE": 3, "WIDTH": 64, "EXACT": 0, "STORE": 0, "FUNCTIONS": 1})
        for f in (0, 1, 3, 4)
    ),
    ("products", {"FUNCTION": 4, "DEGREE": 0, "WIDTH": 784, "EXACT": 1, "STORE": 0, "FUNCTIONS": 1}),
    ("products", {"FUNCTION": 4, "DEGREE": 0, "WIDTH": 784, "EXACT": 1, "STORE": 0, "FUNCTIONS": 16}),
    ("products", {"FUNCTION": 4, "DEGREE": 0, "WIDTH": 64, "EXACT": 0, "STORE": 0, "FUNCTIONS": 9}),
    ("products", {"FUNCTION": 4, "DEGREE": 0, "WIDTH": 16, "EXACT": 0, "STORE": 1, "FUNCTIONS": 1}),
    *(
        (
            "direct",
            {
                "REAL": real, "DATA": "float", "TERM": term, "FUNCTION": 2, "DEGREE": 0, "STORE": store,
                "FUNCTIONS": functions, "SPLIT": split,
            },
        )
        for real, term, store, functions, split in [
            ("float", 2, 0, 1, 0), ("double", 1, 0, 1, 0), ("double", 3, 1, 1, 0), ("double", 0, 0, 1, 0),
            ("double", 1, 0, 12, 0), ("double", 0, 0, 1, 1), ("double", 1, 0, 1, 1), ("double", 2, 1, 1, 1),
            ("double", 1, 0, 12, 1),
        ]
    ),
    *(
        (
            "precise",
            {
                "DATA": data, "FUNCTION": function, "DEGREE": 3, "DEPTH": depth, "STRIDE": depth + 4,
                "FUNCTIONS": functions, "SMALL_PRODUCTS": small,
            },
        )
        for data, function, depth, functions, small in [
            ("double", 2, 56, 1, 0), ("double", 2, 16, 8, 0), ("float", 2, 64, 1, 1), ("float", 1, 8, 1, 0),
            ("double", 3, 16, 1, 0), ("double", 0, 16, 8, 1),
        ]
    ),
    *(
        (
            "pair_steps",
            {
                "VALUE": value, "BLOCKS": blocks, "THREADS": 256, "VARIABLES": 3, "GROUPS": groups, "SINGLES": singles,
                "KINKS": kinks, "RIDGE": kinks, "BOUND_TOLERANCE": 1e-14,
            },
        )
        for value, blocks, groups, singles, kinks in [
            ("float", 1, 1, 0, 0), ("double", 1, 2, 1, 1), ("float", 1, 2, 0, 1), ("float", 8, 1, 0, 0),
            ("double", 8, 2, 1, 1),
        ]
    ),
    *(
        (
            "joint_steps",
            {
                "BLOCKS": blocks, "THREADS": threads, "VARIABLES": 3, "KINKS": kinks, "RIDGE": kinks, "FRACTION": 0.4,
                "BOUND_TOLERANCE": 1e-14,
            },
        )
        for blocks, threads, kinks in [(1, 1024, 0), (1, 1024, 1), (8, 256, 0), (8, 256, 1)]
    ),
    ("variables", {"KINKS": 0}),
    ("variables", {"KINKS": 1}),
]  # fmt: skip


def test_shared_memory_of_products_in_float64():
    """Every card since Ampere has 99 KB for a block of threads; an H200 has more, so that no test on it would tell."""
    from maxmargin.cuda.products import DIRECT_FUNCTIONS, precise_tile

    for width in range(1, 200):
        for functions in range(1, DIRECT_FUNCTIONS + 1):
            depth, stride, memory = precise_tile(width, functions)
            assert depth % 4 == 0
            assert depth <= stride
            assert memory <= 101_376


@pytest.fixture(scope="module")
def nvrtc():
    try:
        [library] = [file for file in files("nvidia-cuda-nvrtc") or [] if file.name.startswith("libnvrtc.so")]
    except PackageNotFoundError:
        pytest.skip("needs nvidia-cuda-nvrtc, the compiler of CUDA sources, which is packaged for Linux only")
    return ctypes.CDLL(str(library.locate()))


#: Ampere has no clusters of blocks.
COMPILED = [
    (source, parameters, architecture)
    for source, parameters in VARIANTS
    for architecture in ("sm_80", "sm_89", "sm_90")
    if parameters.get("BLOCKS", 1) == 1 or architecture == "sm_90"
]


@pytest.mark.parametrize(("source", "parameters", "architecture"), COMPILED, ids=lambda value: str(value)[:40])
def test_compiles(nvrtc, source, parameters, architecture, tmp_path):
    # The header of half precision is a part of CuPy and of the toolkit; its types are all that is needed here.
    (tmp_path / "cuda_fp16.h").write_text("struct alignas(2) __half { unsigned short bits; };")
    text = source_text(f"{source}.cu").encode()
    options = ["--std=c++17", f"--gpu-architecture={architecture}", f"--include-path={tmp_path}"]
    options += [f"-D{key}={value}" for key, value in parameters.items()]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None)
    arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), arguments)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    assert not failed, log.value.decode()
