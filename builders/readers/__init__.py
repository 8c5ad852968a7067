"""File formats that several datasets share.

A reader raises ValueError with what is wrong and where; a builder or a client makes a UserError of
it, which says what a user may do.
"""
