"""The texts of the modules of `gate/client/api`."""

from __future__ import annotations

from typing import Final

from api.description.client.functions import functions
from api.description.client.methods import methods
from api.description.client.names import NAMES, Names
from api.description.client.operations import operations
from api.description.client.schemas import Types
from api.description.client.typed_dicts import typed_dicts
from api.description.spec import Document

_TOP: Final = (
    "# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the\n"
    "# generator, in api/description/client.\n"
)
_PACKAGE: Final = '''\
"""The client's interface, which `make client` generates from the OpenAPI document. Do not edit it by hand.

    types         the types of requests and responses
    operations    every operation as a function that returns its call
    endpoints     every operation as a method, for threads and for asyncio

Programs use these from `gate.client`: as `gate.client.types`, `gate.client.operations`, and the methods of a client.
"""
'''


def sources(document: Document, names: Names = NAMES) -> dict[str, str]:
    """The text of each module by the name of its file, before `ruff format`.

    Args:
        document: The OpenAPI document.
        names: The vocabulary of the client.

    Raises:
        Unsupported: The document has something that the generator does not know, or the vocabulary does not fit the
            document.
    """
    types = Types(document["components"]["schemas"], names)
    tags = operations(document, types, names)
    known = ["Json", *types.words, *(shape.name for shape in types.shapes)]
    made = {
        "__init__.py": _PACKAGE,
        "types.py": typed_dicts(types),
        "operations.py": functions(tags, known),
        "endpoints.py": methods(tags, known),
    }
    return {name: _TOP + text for name, text in made.items()}
