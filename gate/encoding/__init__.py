"""How JSON is read, written and looked at, whatever it means.

    strict_json    the only parser of what others send: I-JSON, bounded, refused rather than guessed
    yaml_text      YAML 1.2 that holds JSON, for files of authors
    canonical      RFC 8785 bytes, hashes over them, and compacting: empty members dropped
    stored_json    what the service itself stored, read again at orjson's speed
    shapes         values held against the published JSON Schemas, with sentences for people
    csv_text       texts that strangers wrote, as CSV that a spreadsheet does not run
    positions      the lines of a text on which its members stand
    resources      the schemas and sample data that travel with the product
    folding        texts and names without what only changes their looks
    credentials    members that look like passwords, tokens or keys

Pure but for `resources`, which reads the shipped files. Nothing here knows a rulebook, a record or a request.
"""
