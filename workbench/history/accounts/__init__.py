"""What an import understood and what it refused.

account      the numbers, added up stretch by stretch
dates        dates that are odd among the others
cells        a cell as reports show it
summary      the table of a report's columns, and its warnings
"""
