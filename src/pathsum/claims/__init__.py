"""The claims of the papers and of this suite as data, each with its measure and its threshold.

AMF is *A Mathematical Framework for Transformer Circuits* (Elhage et al. 2021), ICL is *In-context Learning and
Induction Heads* (Olsson et al. 2022). A claim is judged per model: reproduced if every model that it concerns passes,
partly if some do, not if none does, "not testable here" if there is no such model.

Each file that defines ``CLAIMS`` is named after a theme of the report. The section of that theme shows the evidence.
"""
