"""The rewrites of fuse-traversals, one a file."""
