"""Reads, writes, and checks JSON, independent of its meaning.

    strict_json    the only parser for JSON from others: I-JSON of limited size, with no repairs
    yaml_text      YAML 1.2 with JSON values, for files of authors
    canonical      RFC 8785 bytes, their hashes, and compact values without empty fields
    stored_json    a fast parser for JSON that the service itself stored
    shapes         checks values with the published JSON Schemas, with messages for people
    csv_text       texts of strangers as CSV that a spreadsheet does not run
    positions      the lines of a text's fields
    resources      the schemas and sample data in the product
    folding        texts and names without differences that only change their looks
    credentials    finds values that look like passwords, tokens, or keys

Pure, except for `resources`, which reads the files of the product. This package does not depend on rulebooks, records,
or requests.
"""
