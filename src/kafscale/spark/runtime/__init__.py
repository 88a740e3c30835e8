"""Spark sessions, Java, Maven jars, Python workers and parallel tasks."""
