"""A model is trained on a GPU if there is one, and its record names the device."""

import platform

import pytest
import torch

from pathsum.records.evaluation import Device
from pathsum.training.device import choose, describe, product_dtype


@pytest.mark.parametrize(("wanted", "there", "got"), [
    ("auto", False, "cpu"), ("auto", True, "cuda"), ("cpu", True, "cpu"), ("cuda", True, "cuda"),
])  # fmt: skip
def test_the_device_is_chosen_by_what_there_is(
    monkeypatch: pytest.MonkeyPatch, wanted: str, there: bool, got: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert choose(wanted).type == got


def test_a_processor_is_described_by_what_its_bits_depend_on() -> None:
    found = describe(torch.device("cpu"))
    assert found.name.startswith(f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, ")
    assert found.name.endswith(f"{str(product_dtype('cpu')).removeprefix('torch.')} products")
    assert (found.processes, found.peak_flops) == (1, None)
    assert str(found) == found.name
    assert str(Device("GPU", 4, 1e15)) == "4 × GPU"


@pytest.mark.parametrize(("kind", "used", "bf16", "amx", "dtype"), [
    ("cpu", "AVX2", False, False, torch.float32), ("cpu", "AVX512", False, False, torch.float32),
    ("cpu", "AVX512", True, False, torch.bfloat16), ("cpu", "AVX512", False, True, torch.bfloat16),
    ("cpu", "AVX2", True, True, torch.float32),  # as ATEN_CPU_CAPABILITY=avx2 asks
    ("cuda", "AVX2", False, False, torch.bfloat16),
])  # fmt: skip
def test_products_are_bf16_only_where_the_hardware_multiplies_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, used: str, bf16: bool, amx: bool, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: used)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bf16)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    assert product_dtype.__wrapped__(kind) == dtype
