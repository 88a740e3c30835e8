"""The sections of the configuration file.

The string under each field is its user documentation: what the setting does, its unit, and the
reason for its default. docs/configuration.md is generated from these strings.
"""
