"""The pages of drafts: drafts has their list and one in the studio, cases those of one,
revisions what it was before, compare it beside another text."""
