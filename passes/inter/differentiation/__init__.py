"""The rules of autodiff."""
