"""Services beside binding decisions: what they answer authorizes nothing by itself.

policies      refund, cancel, return and trial questions, answered from tables by rulebooks
"""
