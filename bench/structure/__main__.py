"""`python -m bench.structure [root] [--save FILE] [--against FILE]`: prints how the house is built, in figures.

The files that a decide and a guard pass are those of the code that runs, so another tree's figures are without them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson

from bench.measure import percentile
from bench.samples import ROOT
from bench.structure.counts import anys, function_lengths, modules_per_folder, per_thousand
from bench.structure.imports import circles, floors, modules_graph, rooms_graph
from bench.structure.passes import passed
from bench.structure.tree import Module, read
from bench.tables import table

Figures = Mapping[str, float | None]
"""Each figure by its name; None where it was not counted."""

_PRODUCT: Final = ("gate", "workbench", "api")
# Lists of peers: a reader who looks for one route, command or part need not know the others.
_PEERS: Final = ("api/routes", "api/cli", "bench/parts")
_CLIENT: Final = "gate/client/"
_MOST: Final = 25


def main() -> None:
    """Prints the figures of a work tree."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.structure", description="Prints how the house is built, in figures."
    )
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="another work tree than this one")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    parser.add_argument("--against", type=Path, metavar="FILE", help="put those of FILE beside them")
    parser.add_argument("--files", action="store_true", help="name the files that the two calls pass")
    arguments = parser.parse_args()
    modules = read(arguments.root)
    product = [module for module in modules if module.path.parts[0] in _PRODUCT]
    loops = circles(modules_graph(modules))
    passes = passed() if arguments.root.resolve() == ROOT else {}
    figures = {
        **_of_folders(modules),
        **_of_imports(modules),
        **_of_lines(product, read(arguments.root, ["tests"])),
        **{f"files that one {name} passes": len(passes[name]) if passes else None for name in ("decide", "guard")},
    }
    before: Figures = orjson.loads(arguments.against.read_bytes()) if arguments.against else {}
    print(_shown(figures, before))
    print(f"\n{_by_folder(modules)}\n\n{_with_most_anys(product)}")
    for names in loops:
        print(f"\nA circle: {', '.join(names)}")
    if arguments.files:
        for name, files in passes.items():
            print("\n".join([f"\nOne {name} passes:", *(f"  {file}" for file in files)]))
    if arguments.save:
        arguments.save.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2) + b"\n")


def _of_folders(modules: Sequence[Module]) -> dict[str, float | None]:
    folders = modules_per_folder(module for module in modules if module.path.parts[0] != "notebooks")
    apart = {folder: folders.pop(folder) for folder in _PEERS if folder in folders}
    return {
        "modules of the fullest folder": max(folders.values()),
        **{f"modules of {folder}, a list of peers": number for folder, number in apart.items()},
    }


def _of_imports(modules: Sequence[Module]) -> dict[str, float | None]:
    arrows = modules_graph(modules)
    rooms = rooms_graph(arrows)
    return {
        "rooms": len(rooms),
        "floors": floors(rooms),
        "arrows between rooms": sum(map(len, rooms.values())),
        "circles of rooms": len(circles(rooms)),
        "circles of modules": len(circles(arrows)),
    }


def _of_lines(product: Sequence[Module], tests: Sequence[Module]) -> dict[str, float | None]:
    by_hand = [module for module in product if not module.is_generated]
    generated = [module for module in product if module.is_generated]
    client = [module for module in by_hand if str(module.path).startswith(_CLIENT)]
    code = sum(module.code_lines for module in product)
    lengths = function_lengths(product)
    return {
        "lines of code": code,
        "Any per 1,000 lines of code": per_thousand(sum(map(anys, product)), product),
        "Any per 1,000 lines of code, by hand": per_thousand(sum(map(anys, by_hand)), by_hand),
        "Any per 1,000 lines of code, generated": per_thousand(sum(map(anys, generated)), generated),
        "lines with a comment per line of code": sum(module.comment_lines for module in product) / code,
        "lines of a function, median": statistics.median(lengths),
        "lines of a function, 90 % at most": percentile(lengths, 90),
        "lines of a function, most": lengths[-1],
        "lines by hand in gate/client": sum(module.lines for module in client),
        "lines of code by hand in gate/client": sum(module.code_lines for module in client),
        "lines of code in tests per line of code": sum(module.code_lines for module in tests) / code,
    }


def _shown(figures: Figures, before: Figures) -> str:
    names = ["figure", *(["before"] if before else []), "now"]
    columns = [*([before] if before else []), figures]
    return table(names, [[name, *(_cell(column.get(name)) for column in columns)] for name in {**before, **figures}])


def _cell(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:,.2f}" if isinstance(figure, float) else f"{figure:,}"


def _by_folder(modules: Sequence[Module]) -> str:
    folders = modules_per_folder(modules)
    rows = []
    for folder in sorted({module.folder for module in modules}):
        inside = [module for module in modules if module.folder == folder]
        said = sum(map(anys, inside))
        lines = sum(module.code_lines for module in inside)
        apart = ", peers" if folder in _PEERS else ""
        rows.append(
            [f"{folder}{apart}", f"{folders[folder]}", f"{lines:,}", f"{said}", f"{per_thousand(said, inside):.1f}"]
        )
    return table(["folder", "modules", "lines of code", "Any", "per 1,000"], rows)


def _with_most_anys(product: Sequence[Module]) -> str:
    most = sorted(product, key=lambda module: (-anys(module), module.path))[:_MOST]
    rows = [
        [
            f"{module.path}{', generated' if module.is_generated else ''}",
            f"{anys(module)}",
            f"{per_thousand(anys(module), [module]):.1f}",
        ]
        for module in most
    ]
    return table([f"the {_MOST} modules that say Any most", "Any", "per 1,000"], rows)


if __name__ == "__main__":
    main()
