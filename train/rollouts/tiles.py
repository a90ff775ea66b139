"""The size of the tiles of a Triton kernel, so that it fits the shared memory of the GPU that it runs on."""

MAX_STAGES = 4
TILE_TOKENS = (64, 32)


def choose_tiles(width: int, queries: int, itemsize: int, shared_bytes: int) -> tuple[int, int]:
    """Chooses the tokens of a tile and the tiles in flight of the kernel that attends to trunks.

    A block keeps its queries and weights, and for each tile in flight the keys and values; the compiler reserves
    at most this sum.

    Args:
        width: The width of a head.
        queries: The queries of a block, after padding.
        itemsize: The bytes of a number of the cache.
        shared_bytes: The most shared memory of a block: 227 KB on H100 and B200, 163 KB on A100, 99 KB on RTX 3090,
            4090 and 5090, A6000 and L40S.

    Returns:
        The tokens of a tile, and the number of stages.
    """
    for tokens in TILE_TOKENS:
        for stages in range(MAX_STAGES, 1, -1):
            needed = itemsize * (2 * stages * tokens * width + queries * (width + tokens))
            if needed <= shared_bytes:
                return tokens, stages
    return TILE_TOKENS[-1], 1
