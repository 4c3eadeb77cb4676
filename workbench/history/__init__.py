"""Imported past cases: a team's own history, as a named set of a scope beside its chain.

    history/scope=<id>/<name>/manifest.json     what a set holds; the only truth about its files
    history/scope=<id>/<name>/cases-000001...   one table's rows of a stretch of the sources

    mapping      map.yaml: which column holds what
    times        how the sources write times
    sources      the files that are imported, and their kinds
    csv_source   CSV, cut into whole records in bounded memory
    row_sources  JSON Lines and Parquet, likewise
    values       the cells of a stretch, typed or refused
    reasons      why cells are refused
    tables       what was typed, as tables of the lake
    accounts     what was understood and what was refused, for the report
    ids          whether an id was seen before, in bounded memory
    importing    the import: stretch by stretch, resumable, visible only when it is whole
    sets         the manifests of sets, and their hashes
    marks        what says in every report over a set that its cases are imported
    upkeep       erasing rows, removing sets, and holding their files against their manifests

Nothing here reaches the chain, cohorts, records or alerts.
"""
