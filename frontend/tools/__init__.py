"""What the commands and the benchmarks share: models, data, child processes, reports."""
