"""pathsum: *A Mathematical Framework for Transformer Circuits* (Elhage et al. 2021), reproduced and checked."""
