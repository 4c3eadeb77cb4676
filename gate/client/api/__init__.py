# Generated from the OpenAPI document by `make client`. Do not edit: change the document, in schemas/, or the
# generator, in api/description/client.
"""The client's surface, generated from the OpenAPI document by `make client`; nothing here is written by hand.

    types         the shapes of what is sent and answered
    operations    every operation as a function that gives its call
    endpoints     every operation as a method, for threads and for asyncio

Programs take these from `gate.client`, as `gate.client.types`, `gate.client.operations` and the methods of a client.
"""
