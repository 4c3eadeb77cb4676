"""The workbench: the lake that a ledger is exported to, and the engines that answer questions over it."""
