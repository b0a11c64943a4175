"""The rules of partition."""
