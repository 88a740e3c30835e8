"""Runs targets with mutations of their seeds and of inputs that were decoded."""

import time
from random import Random

from fuzz.target import INPUT_BYTES_MAX, Checker, Target
from services.mutation import mutated

CORPUS_MAX = 2_000
MUTATIONS_MAX = 4


def run(target: Target, seconds: float, random: Random) -> Checker:
    """Check inputs until `seconds` of CPU time are used, or twice as much has passed.

    Without coverage, inputs that are decoded are the best known ones to go on from.
    """
    checker = Checker(target)
    corpus = list(target.seeds())
    for seed in corpus:
        checker.check(seed)
    used_until, deadline = time.process_time() + seconds, time.monotonic() + 2 * seconds
    while time.process_time() < used_until and time.monotonic() < deadline:
        data = random.choice(corpus)
        for _ in range(random.randint(1, MUTATIONS_MAX)):
            data = mutated(data, random)
        data = data[:INPUT_BYTES_MAX]
        decoded = checker.decoded
        checker.check(data)
        if checker.decoded > decoded and len(corpus) < CORPUS_MAX:
            corpus.append(data)
    return checker
