"""Other people's weights and text, behind one protocol."""
