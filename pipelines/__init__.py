"""One thin entry point per stage: read, call, write. Paths, params.yaml and Hydra are known only here."""

import os

# Read when torch loads. Threads that spin while they wait for each other stall where another process wants their core:
# 1.5k instead of 11k tokens/s beside three busy processes; no difference on an idle machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
