"""Imported past cases: a team's own history, as a named set of a scope, next to its chain.

    history/scope=<id>/<name>/manifest.json     the content of a set; the only source about its files
    history/scope=<id>/<name>/cases-000001...   one table's rows of a stretch of the sources

    mapping      map.yaml: the column of each field
    times        the formats of times in the sources
    sources      the imported files, and their kinds
    csv_source   CSV, split into complete records in bounded memory
    row_sources  JSON Lines and Parquet, likewise
    values       the cells of a stretch, typed or refused
    reasons      the reasons for refused cells
    tables       typed rows as tables of the lake
    accounts     the report of understood and refused rows
    ids          whether an id occurred before, in bounded memory
    importing    the import: in stretches, resumable, visible only when complete
    sets         the manifests of sets, and their hashes
    marks        marks every report over a set as a report over imported cases
    upkeep       erases rows, removes sets, and compares files with manifests

Imported cases never reach the chain, cohorts, records, or alerts.
"""
