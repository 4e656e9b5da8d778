"""Verification: does a policy have an unsafe run at all?

`verify` answers with a proof that `check_proof` confirms, with an unsafe run that replays,
or with UNKNOWN and the reason.
"""

from safetest_gym.deciders.verdict import Budget, Verdict
from safetest_gym.errors import CertificateError
from safetest_gym.verify.checking import check_proof
from safetest_gym.verify.inductive import InductiveBoxes, InductiveSet, InductiveStates, load_proof
from safetest_gym.verify.result import Progress, UnsafeRun, Verification
from safetest_gym.verify.verification import verify

__all__ = [
    "Budget",
    "CertificateError",
    "InductiveBoxes",
    "InductiveSet",
    "InductiveStates",
    "Progress",
    "UnsafeRun",
    "Verdict",
    "Verification",
    "check_proof",
    "load_proof",
    "verify",
]
