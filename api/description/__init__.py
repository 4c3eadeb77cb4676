"""The service's description of itself, from `schemas/` and its table of errors.

    openapi      assembles the OpenAPI document
    spec         the parts of the document that this package reads, as types
    docs         a summary of the document, and its layout for readers
    documents    all three in the form that `api.routes.documents` sends
    client       generates `gate/client/api` from the OpenAPI document: `make client`

There is no second list of endpoints.
"""
