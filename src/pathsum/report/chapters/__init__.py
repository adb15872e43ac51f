"""The chapters of the report: the main results, with their figures. Details are in the appendix."""
