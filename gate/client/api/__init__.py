# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the
# generator, in api/description/client.
"""The client's interface, which `make client` generates from the OpenAPI document. Do not edit it by hand.

    types         the types of requests and responses
    operations    every operation as a function that returns its call
    endpoints     every operation as a method, for threads and for asyncio

Programs use these from `gate.client`: as `gate.client.types`, `gate.client.operations`, and the methods of a client.
"""
