"""In which order the steps of a phase are done."""
