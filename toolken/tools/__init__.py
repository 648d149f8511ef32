"""Tools: typed functions, their argument grammar, and the process that runs them."""
