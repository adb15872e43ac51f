"""pathsum: a reproduction of *A Mathematical Framework for Transformer Circuits* (Elhage et al. 2021), with exactness
checks."""
