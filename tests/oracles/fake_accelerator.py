"""A GPU without a GPU: the code that trains runs on it, and shows mixed devices, synchronizations and peak memory.

    the real steps ─► FakeAccelerator ─┬─► tensors on the device: shapes without data (torch's FakeTensorMode)
                                       └─► tensors on the host: real

An operation that mixes the devices raises as on CUDA. A copy to the host, and one from memory that is not pinned, waits
for the device and is counted with the line that asked for it; what arrives on the host are zeros. The device is torch's
PrivateUse1, with the rules of CUDA's autocast and the outputs of its fused attentions.

What it cannot show: whether a kernel is right or how fast it is, what kernels and NCCL allocate for themselves, how an
allocator fragments, races between streams, Triton (FlexAttention), and torch.Generator on a device.
"""

import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_iter, tree_map_only, tree_unflatten

import train

if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip("torch cannot register a device written in Python before 2.10", allow_module_level=True)

DEVICE = "fakegpu"
PACKAGE = str(Path(train.__file__).parent)
aten: Any = torch.ops.aten
# Casts of CUDA's autocast that these models meet: aten/src/ATen/autocast_mode.h.
_IN_LOWER_PRECISION = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "scaled_dot_product_attention")
_IN_FLOAT32 = (
    "exp", "log", "rsqrt", "reciprocal", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "cumsum", "logsumexp", "softmax.int",
    "log_softmax.int", "sum", "sum.dim_IntList", "prod", "layer_norm", "linalg_vector_norm",
)  # fmt: skip
_IN_THE_WIDEST = ("cat", "stack", "addcdiv", "addcmul", "scatter_add")
_AUTOCAST = "AutocastPrivateUse1"


class StorageCounter(TorchDispatchMode):
    """Counts the bytes of the storages that operations return, until each is freed or resized.

    Attributes:
        alive: Bytes now.
        peak: The most bytes since it was set.
    """

    def __init__(self) -> None:
        super().__init__()  # torch's own has no types
        self.alive = self.peak = 0
        self._sizes: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        result = function(*arguments, **(options or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, Tensor):
                self._count(tensor)
        return result

    def _count(self, tensor: Tensor) -> None:
        if (storage := tensor.untyped_storage()) not in self._sizes:
            size = self._sizes[storage] = [0]
            self._resize(size, storage.nbytes())
            weakref.finalize(storage, self._resize, size, 0)

    def _resize(self, size: list[int], new: int) -> None:
        self.alive += new - size[0]
        size[0] = new
        self.peak = max(self.peak, self.alive)

    def __enter__(self) -> "StorageCounter":
        # FSDP frees gathered weights by resizing their storage, which is no operation.
        self._resize_storage = torch.UntypedStorage.resize_
        counter = self

        def resize_(storage: Any, size: int) -> Any:
            result = counter._resize_storage(storage, size)
            if storage in counter._sizes:
                counter._resize(counter._sizes[storage], size)
            return result

        torch.UntypedStorage.resize_ = resize_
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        torch.UntypedStorage.resize_ = self._resize_storage
        super().__exit__(*error)


class _SharedMode(FakeTensorMode):
    """Not copied with a tensor: a frozen copy of a model lies on the same device."""

    def __deepcopy__(self, _memo: Any) -> "_SharedMode":
        return self


class FakeAccelerator(StorageCounter):
    """The device DEVICE, inside a `with`.

    Attributes:
        syncs: How often the host waited for the device, by "file:line" of the package train.
    """

    def __init__(self) -> None:
        super().__init__()
        _register()
        self.syncs: Counter[str] = Counter()
        self._fake = _SharedMode()
        self._pinned: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()

    def __enter__(self) -> "FakeAccelerator":
        self._lifts = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(…, device=) is an operation
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")  # by torch's own deepcopy
        # In the calling thread: autograd has threads for those devices alone that it met at its first backward pass.
        self._multithreading = torch.autograd.set_multithreading_enabled(False)
        self._to_list = FakeTensor.tolist
        FakeTensor.tolist = lambda tensor: tensor.cpu().tolist()  # in one copy, as CUDA
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        FakeTensor.tolist = self._to_list
        torch.autograd.set_multithreading_enabled(self._multithreading.prev)
        self._warnings.__exit__(*error)
        torch._C._set_only_lift_cpu_tensors(self._lifts)

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        if function is torch.ops.prim.device.default:
            return arguments[0].fake_device
        if DTensor in types:
            return NotImplemented  # its local tensors come back here
        options = options or {}
        leaves, structure = tree_flatten((arguments, options))
        is_fake = [isinstance(leaf, FakeTensor) for leaf in leaves]
        device = options.get("device")
        if function is aten.is_pinned.default:
            return id(arguments[0]) in self._pinned
        if function is aten._pin_memory.default:
            pinned = arguments[0].clone()
            self._pinned[id(pinned)] = pinned
            return pinned
        if not any(is_fake) and (device is None or device.type != DEVICE):
            return function(*arguments, **options)  # on the host
        if function is aten._local_scalar_dense.default:
            self._synchronize()
            return torch.zeros((), dtype=arguments[0].dtype).item()
        from_host = [isinstance(leaf, Tensor) and not fake for leaf, fake in zip(leaves, is_fake, strict=True)]
        if any(from_host):
            is_copy = function in (aten._to_copy.default, aten.copy_.default)
            if is_copy and not self._is_asynchronous(function, arguments, options):
                self._synchronize()
            leaves = [
                self._fake.from_tensor(leaf) if real else leaf for leaf, real in zip(leaves, from_host, strict=True)
            ]
            arguments, options = tree_unflatten(leaves, structure)
        with self._fake:
            result = function(*arguments, **options)
        return tree_map_only(Tensor, self._settle, result)

    def _settle(self, tensor: Tensor) -> Tensor:
        if tensor.device.type == DEVICE:
            self._count(tensor)
            return tensor
        self._synchronize()
        return torch.zeros(tensor.shape, dtype=tensor.dtype)

    def _is_asynchronous(self, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        """Whether a copy from the host waits for nothing: from pinned memory, where that was asked for."""
        in_place = function is aten.copy_.default
        asked = arguments[2] if in_place and len(arguments) > 2 else options.get("non_blocking")
        return bool(asked) and id(arguments[int(in_place)]) in self._pinned

    def _synchronize(self) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and (frame.f_code.co_filename == __file__ or PACKAGE not in frame.f_code.co_filename):
            frame = frame.f_back
        line = f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)}:{frame.f_lineno}" if frame else "elsewhere"
        self.syncs[line] += 1


@contextmanager
def _without_autocast() -> Iterator[None]:
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C._dispatch_key_parse(_AUTOCAST))):
        yield


@cache
def _register() -> None:
    """Makes PrivateUse1 this device, once in a process: it is then torch's accelerator there."""
    backend_registration._setup_privateuseone_for_python_backend(DEVICE, _DeviceModule())
    library = torch.library.Library("aten", "IMPL")
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(torch.library.fallthrough_kernel, _AUTOCAST)
    _register.libraries = library, fallback  # what it registers goes with it
    casts = _Casts()
    for names, rule in (
        (_IN_LOWER_PRECISION, casts.lower),
        (_IN_FLOAT32, casts.float32),
        (_IN_THE_WIDEST, casts.widest),
    ):
        for name in names:
            packet, _, overload = name.partition(".")
            operation = getattr(getattr(aten, packet), overload or "default")
            library.impl(name, partial(rule, operation), _AUTOCAST)
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        library.impl("scaled_dot_product_attention", _attention, key)


class _Casts:
    """CUDA's autocast: to what inputs are cast. Weights are cast once, until the outermost context ends."""

    def __init__(self) -> None:
        self._cached: dict[int, tuple[Tensor, Tensor]] = {}
        clear = torch.clear_autocast_cache

        def clear_both() -> None:
            self._cached.clear()
            clear()

        torch.clear_autocast_cache = clear_both

    def lower(self, operation: Any, *arguments: Any, **options: Any) -> Any:
        return self._call(operation, torch.get_autocast_dtype(DEVICE), arguments, options)

    def float32(self, operation: Any, *arguments: Any, **options: Any) -> Any:
        return self._call(operation, torch.float32, arguments, options)

    def widest(self, operation: Any, *arguments: Any, **options: Any) -> Any:
        has_float32 = any(isinstance(each, Tensor) and each.dtype == torch.float32 for each in tree_iter(arguments))
        return self._call(operation, torch.float32 if has_float32 else None, arguments, options)

    def _call(self, operation: Any, dtype: torch.dtype | None, arguments: Any, options: Any) -> Any:
        with _without_autocast():
            if dtype is not None:
                arguments, options = tree_map_only(Tensor, partial(self._cast, dtype), (arguments, options))
            return operation(*arguments, **options)

    def _cast(self, dtype: torch.dtype, tensor: Tensor) -> Tensor:
        is_cast = tensor.is_floating_point() and tensor.device.type == DEVICE and tensor.dtype != torch.float64
        if not is_cast or tensor.dtype == dtype:
            return tensor
        is_weight = tensor.is_leaf and tensor.requires_grad and dtype != torch.float32 and not tensor._is_view()
        if not (is_weight and torch.is_autocast_cache_enabled()):
            return tensor.to(dtype)
        if id(tensor) not in self._cached:
            self._cached[id(tensor)] = tensor, tensor.to(dtype)
        return self._cached[id(tensor)][1]


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The kernels that CUDA takes: flash attention, and the memory-efficient one for masks and float32."""
    output: Tensor
    if attn_mask is None and query.dtype != torch.float32:
        output, *_ = aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)
        return output
    if enable_gqa and query.shape[1] != key.shape[1]:
        raise NotImplementedError("CUDA's memory-efficient attention shares no heads: torch would hold all scores")
    output, *_ = aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, torch.is_grad_enabled(), dropout_p, is_causal, scale=scale
    )
    return output


class _Order:
    """A stream or an event; nothing runs, so there is nothing to order."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None: ...

    def record(self, _stream: Any = None) -> "_Order":
        return self

    def record_event(self, _event: Any = None) -> "_Order":
        return self

    def wait_stream(self, _stream: Any) -> None: ...

    def wait_event(self, _event: Any) -> None: ...

    def synchronize(self) -> None: ...


class _DeviceModule:
    """What torch asks of a device's module: torch.cuda for CUDA."""

    Stream = Event = current_stream = _Order

    def is_available(self) -> bool:
        return True

    is_initialized = is_available

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def set_device(self, _index: int) -> None: ...

    def manual_seed_all(self, _seed: int) -> None: ...

    def _lazy_init(self) -> None: ...

    def stream(self, _stream: Any) -> Any:
        return nullcontext()
