"""`gate rulebook`: rulebook files, checked, explained, tested and analysed. Only `register` needs an instance.

command     the subcommands
files       reading rulebook files, and the lines of what is wrong with them
"""
