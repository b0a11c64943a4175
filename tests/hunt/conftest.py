"""The hunt's compiled programs stay out of the user's cache, and run on one thread."""

from gnnc.tests.session import one_thread, session_cache

__all__ = ["one_thread", "session_cache"]
