"""The papers' claims and this suite's own as data, each with the measurement that decides it and its threshold.

AMF is *A Mathematical Framework for Transformer Circuits* (Elhage et al. 2021), ICL is *In-context Learning and
Induction Heads* (Olsson et al. 2022). A claim is judged per model: reproduced where every model that it concerns
passes, partly where some do, not where none does, "not testable here" where there is no such model.

Each file of this folder is a theme of the report, and states the claims whose evidence stands there in its ``CLAIMS``.
"""
