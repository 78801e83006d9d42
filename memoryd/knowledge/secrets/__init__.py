"""
Credentials, which are refused on every way in.

The formats of tokens are those of `detect-secrets` (the fork that its users keep up, Apache-2.0), whose detectors look
at words alone and never ask a network; besides them the common formats that it lacks, what is told (`labelled`),
and the numbers of payment cards, by their issuers' ranges (ISO/IEC 7812) and their check digit (Luhn). What
documentation puts in their place is none (`placeholders`).
"""

from memoryd.knowledge.secrets.detector import Masker, SecretDetector, passes_luhn
from memoryd.knowledge.secrets.masking import Given, Looks

__all__ = ["Given", "Looks", "Masker", "SecretDetector", "passes_luhn"]
