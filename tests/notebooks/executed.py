"""Executing the notebooks. As a program it writes each one's cells and outputs beside its source:

python -m tests.notebooks.executed var-demo/lake
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import jupytext
import nbformat
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = sorted((ROOT / "notebooks").glob("*.py"))

_SECONDS: Final = 120
# Where it is installed, jsonschema compiles a grammar of addresses with it, for seconds, and no chart has one to check.
_WITHOUT: Final = "__import__('sys').modules['rfc3987_syntax'] = None"
# The names of the last notebook, and what it set for the whole process.
_FORGET: Final = """
get_ipython().reset(new_session=True)
__import__("altair").renderers.enable("default")
__import__("polars").Config.restore_defaults()
"""
_PNG: Final = "image/png"
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PIXELS: Final = b"IDAT"
_END: Final = b"IEND"


class Kernel:
    """A process that executes notebooks over a lake, one after the other, each as if it were the first."""

    def __init__(self, lake: Path, folder: Path) -> None:
        """Starts it in the folder of the notebooks."""
        # Without the user's own settings and history.
        self._own = tempfile.TemporaryDirectory(prefix="gate-notebook-")
        own = dict.fromkeys(
            ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"), self._own.name
        )
        with patch.dict(os.environ, {**own, "GATE_LAKE": str(lake.absolute()), "TZ": "UTC"}):
            self._manager, self._client = start_new_kernel(
                kernel_name="python3", cwd=str(folder), extra_arguments=[f"--IPKernelApp.exec_lines={_WITHOUT}"]
            )

    def execute(self, notebook: Any) -> None:
        """Executes the cells of a notebook, and forgets what they defined and set.

        Raises:
            CellExecutionError: A cell failed.
        """
        client = NotebookClient(notebook, km=self._manager, timeout=_SECONDS, record_timing=False)
        client.kc = self._client
        client.execute()
        self._run(_FORGET)

    def move(self, lake: Path, folder: Path) -> None:
        """Goes on in another folder, over another lake."""
        self._run(f"import os; os.chdir({str(folder)!r}); os.environ['GATE_LAKE'] = {str(lake.absolute())!r}; del os")

    def _run(self, code: str) -> None:
        ended = self._client.execute_interactive(code, silent=True, timeout=_SECONDS)
        assert ended["content"]["status"] == "ok", ended

    def close(self) -> None:
        """Ends the process."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._own.cleanup()


def executed(source: Path, lake: Path) -> Any:
    """A notebook with its outputs, executed in a process of its own.

    Args:
        source: The notebook as a Python file.
        lake: The lake that it reads.

    Raises:
        CellExecutionError: A cell failed.
    """
    with closing(Kernel(lake, source.parent)) as kernel:
        return executed_in(kernel, source)


def executed_in(kernel: Kernel, source: Path) -> Any:
    """A notebook with its outputs, without the times at which its cells ran.

    Raises:
        CellExecutionError: A cell failed.
    """
    notebook = jupytext.read(source)
    # What is random, of the machine or of the day would differ from one run to the next.
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
    kernel.execute(notebook)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def pack(notebook: Any) -> None:
    """Makes its pictures small, which takes as long as to draw them: for those that are kept."""
    for data in outputs(notebook.cells):
        if _PNG in data:
            data[_PNG] = b64encode(_packed(b64decode(data[_PNG]))).decode()


def outputs(cells: Iterable[Any]) -> Iterator[dict[str, str]]:
    """What cells show: of each output its content by media type; of printed text, by the stream's name."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            yield output["data"] if "data" in output else {output["name"]: output["text"]}


def _packed(png: bytes) -> bytes:
    """The same picture, in a fourth of the bytes: whoever draws it would rather be quick than thorough."""
    chunks, at = [], len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += length + 12
    pixels = zlib.compress(zlib.decompress(b"".join(data for kind, data in chunks if kind == _PIXELS)), 9)
    rest = [chunk for chunk in chunks if chunk[0] not in (_PIXELS, _END)]
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in [*rest, (_PIXELS, pixels), (_END, b"")]
    )


def main(lake: Path) -> None:
    """Writes every notebook with its outputs."""
    for source in SOURCES:
        notebook = executed(source, lake)
        pack(notebook)
        written: str = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
        source.with_suffix(".ipynb").write_text(f"{written}\n")
        print(f"{source.relative_to(ROOT).with_suffix('.ipynb')} is written.")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
