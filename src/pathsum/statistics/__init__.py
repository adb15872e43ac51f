"""Bootstrap intervals, random rotations, change points, trajectories. ICL: Olsson et al. 2022, in-context learning."""
