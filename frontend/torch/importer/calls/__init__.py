"""The importer's first stage: every call as one op with all its arguments named."""
