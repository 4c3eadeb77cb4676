"""Compares the versions and weeks of a policy.

    bins        the ranges in which values of a fact are alike
    choosing    the facts in which like cases agree
    counting    the queries of an effectiveness report
    strata      let-through decisions by version and by like facts
    middles     the middle of each metric by version and by week

Results of queries over unchanged files are kept.
"""
