"""Other comparisons by week: values of metrics, and how far decisions arrive in groups.

The modules:

    costs    the last week of a shift, and the change of a metric until then
    stretch  the weeks that are examined if a few dates lie far from all others
    windows  windows of weeks, and findings that are the echo of another
    groups   decisions that arrive together, and their information compared with single ones
    ranks    the tests of Mann and Whitney and of van Elteren, and Cliff's delta, over binned values
    values   the values of a metric in bins: their location and spread
    tails    the share of values above or below most of them
    levels   the metrics that shifted
"""
