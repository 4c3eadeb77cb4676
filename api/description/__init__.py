"""The service describes itself, from schemas/ and from its table of errors.

openapi      the OpenAPI document, assembled
spec         the members of the document that are read here, as types
docs         the document in short, and laid out for readers
documents    all three as `api.routes.documents` sends them
client       generates gate/client/api from the OpenAPI document: `make client`
"""
