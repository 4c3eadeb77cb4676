"""Proof: signatures and the audit chain, as values.

    signing     Ed25519 and HMAC signers, public keys, the registry of keys, and the states of a key
    chain       leaves, links and the rolling root; breaks in a chain
    checkpoint  signed checkpoints of a chain, and the epochs of a checkpoint log

Pure. `records` has the signed documents, and `verify` checks exported documents. `instance.keys` handles key files, and
`ledger.chain` appends to a stored chain.
"""
