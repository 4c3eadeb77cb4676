"""Pages as values: a question and what was found in, a title and HTML out. Nothing here reads, waits or knows Panel.

    location    the URL of a page with its filters
    page        what a view makes
    html        templates that escape whatever is put into them
    header      what stands around every page
    failure     a page that says why there is none
    offered     the filters that pages offer
    figure      a chart as part of a page
    tables      tables of numbers as values
    shares      how a whole divides into parts, as a bar
    links       where marks, rows and names lead
    flagged     anomalies: their list, and one of them
    migrations  migrations: their list with the routes, one of them, a draft that is to become one
    drafting    drafts: their list, the studio and its parts, cases, revisions
    imported    imported histories: their list, a rehearsal, and what marks a page that shows one
    reviews     reviews of held decisions: their queue, one of them as a case, where one stands
    decided     decisions: searched, held, and the story of one

The others are one page each: overview, policy, benchmarks. All templates lie in `templates`.
"""
