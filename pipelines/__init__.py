"""One thin entry point a stage: read, call, write. Only here: paths, params.yaml, Hydra."""
