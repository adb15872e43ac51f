"""Interventions on a run of the model: ablation, activation patching and path patching."""
