"""Proof: signatures and the audit chain, as values.

    signing     Ed25519 and HMAC signers, public keys, the registry of keys and what each state of a key means
    chain       leaves, links and the rolling Merkle root; breaks found in a chain
    checkpoint  signed checkpoints of a chain, and the epochs of a log that keeps them

Pure. What is signed and linked is in `records`; checking an exported document against its proof is in `verify`. Key
files are in `instance.keys`, and appending to a stored chain is in `ledger.chain`.
"""
