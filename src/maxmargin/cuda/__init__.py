"""Kernel values and pair steps on NVIDIA GPUs.

`device`
    The GPUs of the computer, by name; CuPy, imported when a device is first asked for.
`modules`
    CUDA sources, compiled when they are first needed and cached on disk.
`device_table`
    `DeviceTable`: samples that were given in GPU memory, and what the host needs of them.
`samples`
    `DeviceSamples`: samples in GPU memory, in their own precision and prepared for tensor cores.
`halves`
    Features as sums of two numbers in half precision.
`products`
    Fused products with a kernel matrix, and blocks of it.
`kernel_values`
    The same for sums, products and multiples of kernels.
`block_values`
    The same of samples that stay in host memory.
`sparse_values`
    The same of sparse samples, from sparse products.
`product_costs`
    The arithmetic of products for certificates, by its estimated time.
`landmarks`
    Landmark features.
`prediction`
    Decision values of samples in host memory or on the GPU.
`transfer`
    Copies of large arrays through pinned memory.
`pair_steps`
    Pair steps on the square block of a working set.

CuPy is not imported without ``device="cuda"``.
"""
