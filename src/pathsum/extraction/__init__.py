"""The records of a trained model: each function ``tables`` computes those of one topic, and ``cell`` combines them."""
