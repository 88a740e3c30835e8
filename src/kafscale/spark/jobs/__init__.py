"""The jobs: what keeps the log healthy, moves it and makes tables of it, on Spark."""
