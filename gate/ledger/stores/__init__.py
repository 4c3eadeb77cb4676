"""Databases, each seen as the same few verbs: everything foreign stays in here.

    store       the protocol of a store, statements, and errors of drivers translated
    sqlite      WAL with synchronous=FULL, and the file lock that processes share
    postgres    one transaction a scope, ordered by the row lock on its head
    copies      whole ledgers copied between stores

A new database belongs here. The neighboring folders know the meaning of the tables.
"""
