"""The report, made from records, verdicts, the preregistration and the data of the lab's models.

This package reads no model, no corpus and no configuration.
"""
