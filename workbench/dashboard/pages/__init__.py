"""What each page loads, and the session that shows it.

    visit      who asks for which page, and when
    routes     the page of each path
    session    a browser's session: asks for pages, shows them, and does what the forms say
    fields     a page's filters and forms as Panel's widgets
    looks      Panel's components in the dashboard's colours

    decided     decisions: a list, those that are held, and one of them
    drafting    drafts: their list, the studio, cases, revisions, comparing
    reviews     reviews of held decisions: their queue, and one of them as a case
    migrations  migrations: their list, one of them, a draft that is to become one

The others are one page each: overview, policy, anomalies and anomaly, benchmarks, histories.
"""
