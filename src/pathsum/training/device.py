"""Choose the training device, describe it, and measure its peak rate in FLOP/s (floating-point operations per
second)."""

import platform
import time
from functools import lru_cache

import torch

from pathsum.records.evaluation import Device
from pathsum.training import ranks

_SIDE, _ROUNDS = 8192, 20  # side and number of the timed products; one takes 1.1e12 FLOP, enough to fill any GPU


def choose(wanted: str) -> torch.device:
    """Return the device for ``wanted``, the value of ``train.device``: "auto", "cpu" or "cuda"."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "train.device: expected a GPU (cuda), got none that torch can see; install a CUDA build of torch, or set "
            "train.device=auto (profile=laptop is the one for two cores)"
        )
    return ranks.local_gpu() if wanted != "cpu" and torch.cuda.is_available() else torch.device("cpu")


@lru_cache
def product_dtype(kind: str) -> torch.dtype:
    """Return the data type of matrix products in training, on a device of type ``kind`` ("cpu" or "cuda")."""
    hardware = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    limited = torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2")
    return torch.bfloat16 if kind != "cpu" or (hardware and not limited) else torch.float32


def describe(device: torch.device) -> Device:
    """Return the description of ``device`` that is stored with a model."""
    if device.type == "cpu":
        products = str(product_dtype("cpu")).removeprefix("torch.")
        name = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, {products} products"
        return Device(name, ranks.world_size(), None)
    return Device(torch.cuda.get_device_name(device), ranks.world_size(), peak_flops(device, _SIDE))


def peak_flops(device: torch.device, side: int) -> float:
    """Return the rate of bf16 products of two side × side matrices, in FLOP/s: the best of several measurements."""
    left, right, out = (torch.randn(side, side, device=device).bfloat16() for _ in range(3))
    best = 0.0
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        torch.mm(left, right, out=out)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = max(best, 2 * side**3 / (time.perf_counter() - start))
    return best
