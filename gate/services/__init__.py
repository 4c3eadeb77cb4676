"""Services in addition to binding decisions. Their answers authorize nothing by themselves.

- `policies`: refund, cancel, return, and trial questions, answered from tables by rulebooks
- `advisory`: open questions, answered by a language model of the operator's choice
- `webhooks`: events delivered to the endpoints of the operator's choice
"""
