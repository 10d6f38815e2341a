"""The runner of PHP's own tests: source, suite, comparison."""
