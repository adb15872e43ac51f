"""From a trained model to records: each file makes the tables of one theme, ``cell`` puts them together."""
