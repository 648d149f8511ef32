"""Reports over evaluations: methods side by side on benchmarks, as tables, plots and pages."""
