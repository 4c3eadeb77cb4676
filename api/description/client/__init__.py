"""Generates `gate/client/api` from the OpenAPI document, which is the only description of the service's interface.

    names          details that the document lacks: Python names, and more exact types
    components     the document's components with these names
    schemas        JSON Schemas as annotations
    operations     the operations, read from the document
    typed_dicts    the module of types
    functions      the module of operations
    methods        the module of both endpoint classes
    modules        the text of these modules
    text           descriptions as docstrings and comments

`make client` runs `python -m api.description.client`, which writes the modules. The generator stops with an error at a
construct that it does not know, so it never drops a part of the document silently. It leaves out an operation with
`x-client: false`, which is for clients of another protocol.
"""

from api.description.client.components import Unsupported
from api.description.client.modules import sources
from api.description.client.names import Names

__all__ = ["Names", "Unsupported", "sources"]
