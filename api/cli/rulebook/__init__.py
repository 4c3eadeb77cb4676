"""`gate rulebook`: rulebook files, checked, explained, tested and analysed. Only `register` needs an instance.

command     the subcommands
files       reading rulebook files, and the lines of what is wrong with them
testing     the subcommand that runs cases
runs        running files of cases, and the lines of those that do not hold
lines       explanations as lines for people
report      the results of cases as JSON
junit       the results of cases as JUnit XML
"""
