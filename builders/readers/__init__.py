"""File formats that several datasets share.

A reader raises ValueError with position and problem; a builder or a client converts it to a
UserError with the user's action.
"""
