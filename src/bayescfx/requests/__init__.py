"""Reading requests: settings, tables, rows, constraints and targets given as text or files.

The command line and the page share this package. It turns what a user typed or sent into the
objects of the public API, and answers into files.
"""
