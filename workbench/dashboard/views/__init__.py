"""Pages as values: functions from a question and its results to a title and HTML. They read no data and use no Panel.

- `location`: the URL of a page with its filters
- `page`: the result of a view
- `html`: templates that escape all values
- `header`: the header of every page
- `failure`: the page that explains why a page cannot be shown
- `offered`: the filters that pages offer
- `figure`: a chart as part of a page
- `tables`: tables of numbers as values
- `shares`: the parts of a whole, as a bar
- `links`: the targets of marks, rows, and names
- `flagged`: anomalies: their list, and one of them
- `migrations`: migrations: their list with the routes, one of them, a draft that is to become one
- `drafting`: drafts: their list, the studio, its parts, cases, and revisions
- `imported`: imported histories: their list, a rehearsal, and the notice on pages that show one
- `reviews`: reviews of held decisions: their queue, one review, and its state
- `decided`: decisions: search results, held decisions, and the page of one

The other modules are one page each: overview, policy, and benchmarks. All templates are in `templates`.
"""
