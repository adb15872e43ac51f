"""What training measures at each evaluation: loss drop, prefix matching, previous-token attention."""
