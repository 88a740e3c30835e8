"""Test doubles for tests of Kafscale and of programs that use it; not imported by Kafscale."""
