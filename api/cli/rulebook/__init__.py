"""`gate rulebook`: check, explain, test, analyze, and register rulebook files.

    command     check, hash, convert, register, explain
    analysis    `analyse`, and the smallest changes that give another verdict
    adapter     the option `--adapter`
    testing     `test`: run cases
    proposals   `cases`: boundary cases, and writing files of cases
    measures    coverage and mutation score, for people and as JSON
    runs        running files of cases, and the line of each failing case
    registered  `list` and `show`: registered versions
    lines       explanations as lines for people
    report      the results of cases as JSON
    junit       the results of cases as JUnit XML
    files       reading rulebook files, and their errors
    documents   reading JSON and YAML files, and the line of each error

Only `register`, `list`, and `show` need an instance. The guides are `docs/guides/write-a-rulebook.md` and
`docs/guides/test-a-rulebook.md`.
"""
