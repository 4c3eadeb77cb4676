"""What is compared week by week besides rates: values of observed metrics, and how far decisions come in groups.

costs    to which week a shift lasts, and what a metric came to meanwhile
stretch  which weeks are looked at where a few dates lie far from all others
windows  windows of weeks, and which of what is found in them is the echo of another
groups   how many decisions that come together say as much as one that comes alone
ranks    Mann and Whitney's test, van Elteren's, and Cliff's delta, of values in bins
values   the values of a metric in bins: where they lie, and how far apart
tails    how many of its values lie above or below most of them
levels   the metrics that shifted
"""
