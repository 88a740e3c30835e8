"""The specs and statuses of the custom resources, typed, with defaults and bounds.

These classes are the only definition: the CRDs' schemas and the reference in the docs are generated
from them.
"""
