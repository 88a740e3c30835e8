"""Generators of committed files: `make generate` writes all of them, `make docs` those of docs/.

The package is not part of the wheel, and `kafscale` does not import it. `files` lists every file;
a test compares them with the committed ones. Protobuf modules are written by protoc.
"""
