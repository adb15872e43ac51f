"""Choose the training device, describe it, and measure its peak rate in FLOP/s (floating-point operations per
second)."""

from __future__ import annotations

import platform
import time
from functools import lru_cache

import torch

from pathsum.probes.evaluation import Device
from pathsum.training import ranks

_SIDE, _ROUNDS = 8192, 20  # side and number of the timed products; one takes 1.1e12 FLOP, enough to fill any GPU


def choose(wanted: str) -> torch.device:
    """Return the device for the setting ``train.device``. With ``auto`` it is a GPU if there is one, otherwise the CPU.

    Apple's GPU is never used; ``TrainConfig`` says why. Raises ValueError if a GPU is requested and there is none.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "train.device: expected a GPU (cuda), got none that torch can see; install a CUDA build of torch, or set "
            "train.device=auto (profile=laptop is the one for two cores)"
        )
    return ranks.local_gpu() if wanted != "cpu" and torch.cuda.is_available() else torch.device("cpu")


@lru_cache
def product_dtype(kind: str) -> torch.dtype:
    """Return the fastest data type for matrix products in training, on a device of type ``kind`` ("cpu" or "cuda").

    This is bfloat16 on every GPU, and on CPUs with AVX512-BF16 or AMX. Other CPUs emulate bfloat16 and are 70 times
    slower with it (measured on AVX2), so they use float32.
    """
    hardware = kind != "cpu" or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if hardware else torch.float32


def describe(device: torch.device) -> Device:
    """Return the description of ``device`` for a model's record, with the measured peak rate if it is a GPU.

    The peak rate of a CPU is left out, because it varies with the load: two runs on one machine would have different
    records. bench/ measures it.
    """
    if device.type == "cpu":
        products = str(product_dtype("cpu")).removeprefix("torch.")
        name = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, {products} products"
        return Device(name, ranks.world_size(), None)
    return Device(torch.cuda.get_device_name(device), ranks.world_size(), peak_flops(device, _SIDE))


def peak_flops(device: torch.device, side: int) -> float:
    """Measure the rate of bf16 matrix products, in FLOP/s. Return the best of several rounds."""
    left, right, out = (torch.randn(side, side, device=device).bfloat16() for _ in range(3))
    best = 0.0
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        torch.mm(left, right, out=out)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = max(best, 2 * side**3 / (time.perf_counter() - start))
    return best
