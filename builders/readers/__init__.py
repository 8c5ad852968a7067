"""File formats that several datasets share.

A reader raises a ValueError that states the position and the problem; a builder or a client
converts it to a UserError that also tells the user what to do.
"""
