"""Records in, figures out. Nothing is computed but selection and the aggregates that a line or an interval shows."""
