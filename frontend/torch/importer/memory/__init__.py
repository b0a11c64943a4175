"""The importer's second stage: who shares memory with whom, and edits in place as values."""
