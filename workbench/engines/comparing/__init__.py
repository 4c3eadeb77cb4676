"""How the versions and weeks of a policy are put beside each other.

bins        in which values of a fact are alike
choosing    the facts in which like cases agree
counting    what an effectiveness report is made of, in queries whose results over unchanged files are kept
strata      let-through decisions by version and by like facts
middles     the middle of each metric by version and by week
"""
