"""What runs passes: the runner, the standard pipelines, and a watcher that interprets modules."""
