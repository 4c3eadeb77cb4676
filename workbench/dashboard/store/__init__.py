"""The data of pages. This package knows nothing about pages, HTML, or Panel, and every read states its scope.

- `access`: the user, and the rights of the user
- `memo`: computes what several sessions ask for once, and keeps the latest of it
- `snapshots`: each scope's lake and the ledger's tail, as of a moment that all sessions share
- `slices`: the decisions that a page is about
- `reports`: the engines' answers over a snapshot
- `reviews`: the queue of held decisions, and where the review of one stands
- `ledger`: decisions as the ledger has them: records, packets, verification
- `histories`: imported past cases, and the import of a file that was sent
- `health`: the health of ledger, chain, lake, and checkpoints
- `store`: all of it, composed
"""
