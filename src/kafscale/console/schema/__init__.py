"""The request and response types of the console's API.

JSON names are in camel case, times are milliseconds since 1970, sizes are bytes, and unknown values
are null. The TypeScript types of the web pages are generated from these.
"""
