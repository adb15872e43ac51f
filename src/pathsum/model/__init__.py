"""The attention-only transformer and its checkpoints."""
