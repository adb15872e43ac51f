"""Claims of the two papers and of this suite, each with its measure and its threshold.

AMF is *A Mathematical Framework for Transformer Circuits* (Elhage et al. 2021). ICL is *In-context Learning and
Induction Heads* (Olsson et al. 2022). A claim is judged on every model that it concerns. The verdict is "reproduced" if
all of them pass, "partly" if some pass, "not" if none passes, and "not testable here" if there is no such model. A
claim about induction heads is judged on models with one; if no model has one, the verdict is "no induction head here".

Each file that defines ``CLAIMS`` is named after a theme: the section of the report that shows the evidence.
"""
