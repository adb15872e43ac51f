"""Claims of the two papers and of this suite, each with its measure and its threshold.

AMF and ICL are the papers that ``circuits`` names. A claim is judged on every model that it concerns (docs/framework.md
§10.7). Each file that defines ``CLAIMS`` is named after a theme: the section of the report that shows the evidence.
"""
