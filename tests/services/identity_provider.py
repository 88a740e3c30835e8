"""An identity provider that exists only for a test: it signs tokens, and publishes its keys."""

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

ALGORITHM = "ES256"


class IdentityProvider:
    """One with a single key, whose public half is in a file (JWKS)."""

    def __init__(self, directory: Path, *, key_id: str = "a key of a test") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.keys_file = directory / "jwks.json"
        self._key_id = key_id
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        public |= {"kid": key_id, "alg": ALGORITHM, "use": "sig"}
        self.keys_file.write_text(json.dumps({"keys": [public]}))

    def token(self, user: str, *, lasts_s: float = 600, **claims: Any) -> str:
        """A token for a user; one that lasts less than nothing is over already."""
        now = time.time()
        # Whole seconds: some clients read no other numbers.
        payload = {"sub": user, "iat": int(now) - 600, "exp": int(now + lasts_s)} | claims
        return jwt.encode(payload, self._key, ALGORITHM, headers={"kid": self._key_id})
