"""Settings: from YAML files and dotted flags to the frozen models of `toolken.config`."""
