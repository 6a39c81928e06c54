"""README and docs: pages whose numbers are filled in, between markers, from the reports.

    <!-- length:begin -->
    what `seqviz.measuring.markdown.length` says
    <!-- length:end -->

Nobody types such a number by hand; ``seqviz report`` fills all pages anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_MARKER = re.compile(r"^<!-- ([a-z-]+):(begin|end) -->$", re.MULTILINE)


def pages(readme: Path) -> list[Path]:
    """The README, its other languages, and the docs beside it."""
    others = readme.parent.glob(f"{readme.stem}.*{readme.suffix}")
    return [readme, *sorted(others), *sorted(readme.parent.glob("docs/*.md"))]


def language_of(page: Path) -> str:
    """ "zh" for ``README.zh.md``, else "en"."""
    return "zh" if ".zh" in page.suffixes else "en"


def blocks_in(text: str, page: str = "README.md") -> list[str]:
    """Names of the blocks of a page, in their order.

    Raises:
        ValueError: a begin without its end, or an end without its begin.
    """
    marks = [match.groups() for match in _MARKER.finditer(text)]
    names = [name for name, _ in marks[::2]]
    if marks != [(name, edge) for name in names for edge in ("begin", "end")]:
        said = ", ".join(f"{name}:{edge}" for name, edge in marks)
        raise ValueError(
            f"expected every <!-- NAME:begin --> of {page} followed by its <!-- NAME:end -->, got {said}; "
            "restore them"
        )
    return names


def fill(text: str, blocks: Mapping[str, str], page: str = "README.md") -> str:
    """A page with each block between its two markers.

    Args:
        text: of the page.
        blocks: Markdown by name; its links start at the repository's root.
        page: path from the repository's root, such as "docs/results.md".
    Raises:
        ValueError: markers that are not in pairs, or of no known block.
    """
    up = "../" * page.count("/")
    for name in blocks_in(text, page):
        if name not in blocks:
            raise ValueError(
                f"expected a block of {page} to be one of {', '.join(blocks)}, got {name!r}; "
                "mend its markers"
            )
        block = re.sub(r"\]\((?=[a-z])(?!https?:)", f"]({up}", blocks[name])
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{block}\n{end}{rest.partition(end)[2]}"
    return text
