"""`gate rulebook`: rulebook files, checked, explained, tested and analysed. Only `register` and `show` need an
instance.

    command     the subcommands, but for those below
    analysis    `analyse`, and the smallest changes that give another verdict
    adapter     the option that names the adapter of a rulebook
    testing     the subcommand that runs cases
    proposals   `cases`: boundary cases, and writing files of cases
    measures    coverage and mutation score, for people and as JSON
    runs        running files of cases, and the lines of those that do not hold
    registered  `show`: a registered version, as a file
    lines       explanations as lines for people
    report      the results of cases as JSON
    junit       the results of cases as JUnit XML
    files       reading rulebook files, and what is wrong with them
    documents   reading JSON and YAML files, and the lines of what is wrong with them

docs/rulebooks.md and docs/testing-rulebooks.md describe them.
"""
