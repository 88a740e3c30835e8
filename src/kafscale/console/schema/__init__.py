"""What the console's API takes and gives: the one definition that both of its sides keep.

The law: names travel in camel case, times are milliseconds since 1970, sizes are bytes, and what is
not known is null rather than a guess. The types of the pages are written from these.
"""
