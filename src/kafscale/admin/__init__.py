"""Operations on a running cluster, used by the CLI, the console and the MCP server.

Results are typed structs whose JSON names are those that all three print. Nothing here prints, and
nothing depends on the caller.
"""
