"""Interventions on a run of the model: ablation, activation patching, path patching and forced patterns."""
