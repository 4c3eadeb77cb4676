"""What pages ask for. Nothing here knows of pages, HTML or Panel, and every read names the scope that it is of.

access      who asks, and what they may do
memo        computes what several sessions ask for once, and keeps the latest of it
snapshots   each scope's lake and the ledger's tail, as of a moment that all sessions share
slices      which decisions a page asks about
reports     the engines' answers over a snapshot
reviews     the queue of held decisions, and where the review of one stands
ledger      decisions as the ledger has them: records, packets, verification
histories   imported past cases, and the import of a file that was sent
health      whether ledger, chain, lake and checkpoints are well
store       all of it, composed
"""
