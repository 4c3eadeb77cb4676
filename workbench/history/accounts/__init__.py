"""The report of an import: the rows that it understood, and those that it refused.

    account      the numbers, added up by stretch
    dates        dates that are unusual among the others
    cells        a cell as reports show it
    summary      the table of a report's columns, and its warnings

Every import and every rehearsal has one.
"""
