"""A prediction service: a model file behind HTTP, and a load test. README.md has the commands."""
