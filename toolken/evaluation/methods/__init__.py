"""Ways to answer the questions of a benchmark, one file each; `catalogue` lists them."""
