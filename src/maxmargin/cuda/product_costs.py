"""Which products a certificate takes on a GPU: in float64, in pairs of float32, or of the CPU, by estimated time.

GPUs for data centres compute float64 at half the rate of float32, others at 1/32 or 1/64. There, the sums over features
take pairs of float32 (`kernels.split_sums`); the function of a sum, and sums over samples, are float64 in any case.
"""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.cuda.device import cupy
from maxmargin.cuda.kernel_values import parts_of
from maxmargin.kernels import Kernel
from maxmargin.kernels.formula import Term
from maxmargin.kernels.native_kernel import NativeKernel
from maxmargin.kernels.split_sums import FeatureSums

#: Of a device in CUDA: its clock in kHz, and the rate of float32 relative to that of float64.
CLOCK_RATE, SINGLE_TO_DOUBLE = 13, 87

#: Operations in float32 of a multiprocessor in one cycle.
SINGLE_LANES = 128

#: Instructions in float64 for a feature, of a product and of a difference, and for a value; those in float32 for a
#: feature as a pair.
DOUBLE_PER_PRODUCT, DOUBLE_PER_DIFFERENCE, DOUBLE_PER_VALUE, SINGLE_PER_FEATURE = 1, 2, 30, 52

#: Features that a core of the CPU adds up in a second, and how many of them a value costs besides: half of what was
#: measured of one core with AVX-512, with 10, 54 and 200 features (1.9 · 10¹⁰).
CPU_FEATURES, CPU_PER_VALUE = 1e10, 20

#: With a smaller tolerance sums are those of differences in float64: bounds on the errors of inner products are some
#: ten times as large, those of pairs a hundred times.
MIN_TOLERANCE = 1e-4


@dataclass(frozen=True)
class DeviceSpeed:
    """The arithmetic of a GPU.

    Attributes
    ----------
    single : float
        Operations in float32 in a second.
    ratio : int
        How many times as long float64 takes.
    """

    single: float
    ratio: int

    @classmethod
    def of(cls, number: int) -> DeviceSpeed:
        """Return that of a GPU, by its attributes."""
        runtime = cupy().cuda.runtime
        count, clock, ratio = (
            int(runtime.deviceGetAttribute(attribute, number))
            for attribute in (runtime.cudaDevAttrMultiProcessorCount, CLOCK_RATE, SINGLE_TO_DOUBLE)
        )
        return cls(SINGLE_LANES * count * 1000.0 * clock, ratio)

    def seconds(self, sums: FeatureSums, width: int, has_products: bool = True) -> float:
        """Return the estimated time of a kernel value of so many features, which may have inner products."""
        if sums is not FeatureSums.SPLIT:
            by_products = has_products and sums is FeatureSums.PRODUCTS
            of_feature = DOUBLE_PER_PRODUCT if by_products else DOUBLE_PER_DIFFERENCE
            return self.ratio * (of_feature * width + DOUBLE_PER_VALUE) / self.single
        return (SINGLE_PER_FEATURE * width + self.ratio * DOUBLE_PER_VALUE) / self.single


def quickest_products(
    number: int, kernel: Kernel, width: int, threads: int, in_host_memory: bool, tolerance: float
) -> FeatureSums | None:
    """Return the arithmetic of the quickest products on a GPU, None if those of the CPU are quicker.

    Samples that are not in host memory stay where they are.
    """
    speed = DeviceSpeed.of(number)
    terms = {part.formula.term for part in parts_of(kernel) if isinstance(part, NativeKernel)}
    has_products = not terms & {Term.ABSOLUTE, Term.CHI_SQUARED}

    def seconds(sums: FeatureSums) -> float:
        return speed.seconds(sums, width, has_products)

    allowed = [FeatureSums.DOUBLE]
    if tolerance >= MIN_TOLERANCE:
        allowed = [FeatureSums.PRODUCTS] + [FeatureSums.SPLIT] * (Term.CHI_SQUARED not in terms)
    best = min(allowed, key=seconds)
    on_cpu = (width + CPU_PER_VALUE) / (CPU_FEATURES * threads)
    return None if in_host_memory and on_cpu < seconds(best) else best
