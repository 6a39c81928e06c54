"""Numbers as pictures of one pixel each, in the markup itself: PNG with a palette.

Shapes: `T` rows, `S` columns.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np


def levels(weights: np.ndarray, color_max: float) -> np.ndarray:
    """Number of the colour of each weight, 0–255, (T, S)."""
    if not 0 < color_max <= 1:
        raise ValueError(f"expected color_max above 0 and at most 1, got {color_max}")
    return np.round(np.clip(weights / color_max, 0, 1) * 255).astype(np.uint8)


def pictures(numbers: np.ndarray, ramps: tuple[np.ndarray, np.ndarray]) -> str:
    """The same pixels with the colours for a light and for a dark page; the page shows one of them."""
    pixels = _pixels(numbers)
    return "".join(
        f'<img class="sv-{name}" alt="" src="{_png(numbers.shape, colors, pixels)}"/>'
        for name, colors in zip(("light", "dark"), ramps, strict=True)
    )


def _pixels(numbers: np.ndarray) -> bytes:
    rows = np.zeros(
        (numbers.shape[0], numbers.shape[1] + 1), dtype=np.uint8
    )  # each begins with its filter: none
    rows[:, 1:] = numbers
    return zlib.compress(rows.tobytes(), 6)


def _png(shape: tuple[int, ...], colors: np.ndarray, pixels: bytes) -> str:
    """A data address of a PNG with a palette (PNG specification, sections 5 and 11).

    Args:
        shape: height and width.
        colors: palette, (256, 3) of uint8.
        pixels: compressed rows of palette numbers.
    """

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", shape[1], shape[0], 8, 3, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", colors.tobytes())
    data += chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"
