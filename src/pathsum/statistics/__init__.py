"""Bootstrap intervals, random rotations, change points, and trajectories of losses.

ICL is Olsson et al. 2022, In-context Learning and Induction Heads.
"""
