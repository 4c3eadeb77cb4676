"""What people do on pages, beside going from one to the other: each act by its name, as a browser asks for it.

    talk        messages of a browser and their answers: one act after the other
    turn        an act of a user in a scope, and what one page of a browser keeps meanwhile
    routes      which function does which act
    drafts      drafts come, go and get their names
    writing     typing in a draft, its table, and what two authors wrote at once
    trying      the facts at hand: what a draft decides over them
    examining   the analysis of a draft, and how well its cases test it
    shown       the parts of the studio that follow from a draft's text
    migrations  a draft is proved and proposed; it is approved, applied and undone
    whatif      the facts of a decision, or of a slice of the ledger, changed by levers
    cases       the cases of a draft
    reviews     an approver grants or refuses a held action
    histories   the file of a history is sent, rehearsed and imported

Whether a user may do it is for `gate.decisions.drafts`, `migrations` and `resolutions` to say, as on the command line.
"""
