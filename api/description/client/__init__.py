"""Generates `gate/client/api` from the OpenAPI document, which stays the one place that says what the service takes.

    names          what the document leaves open: Python names, and shapes that it shows from afar
    components     the document's components under these names
    schemas        JSON Schemas as annotations
    operations     the operations, read from the document
    typed_dicts    the module of types
    functions      the module of operations
    methods        the module of both endpoint classes
    modules        the three as texts
    text           descriptions as docstrings and comments

`python -m api.description.client`, called by `make client`, writes the modules. A construct that the generator does not
know stops it with a sentence: nothing of the document is left out silently. An operation with `x-client: false` is left
out: it is for clients of another protocol.
"""

from api.description.client.components import Unsupported
from api.description.client.modules import sources
from api.description.client.names import Names

__all__ = ["Names", "Unsupported", "sources"]
