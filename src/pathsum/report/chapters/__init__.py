"""The chapters of the report: the story in plain words, with the figures that carry it. Details are in the appendix."""
