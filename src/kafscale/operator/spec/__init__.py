"""What may be wanted: the specs of our two resources, typed, with their defaults and bounds.

These classes are the only definition. The schemas in the CRDs, and the reference in the docs, are
made from them: a field that exists here can be written in YAML, and the other way round.
"""
