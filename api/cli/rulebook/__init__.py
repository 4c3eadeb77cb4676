"""`gate rulebook`: rulebook files, checked, explained, converted, tested and analysed; only `register` needs an instance.

command     the subcommands
files       reading rulebook files, and the lines of what is wrong with them
"""
