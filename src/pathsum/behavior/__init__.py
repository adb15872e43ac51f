"""Build synthetic sequences, and score what heads and models do on them and on text.

AMF and ICL are the papers that ``circuits`` names. BOS is the beginning-of-sequence token.
"""
