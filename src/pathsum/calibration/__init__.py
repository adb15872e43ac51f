"""How far can each detector be trusted? Models trained on text that was planted with what they are to find."""
