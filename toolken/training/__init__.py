"""Training: features of the frozen base, solvers over them, and calibration."""
