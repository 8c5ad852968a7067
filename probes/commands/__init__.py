"""Commands about params and cost."""
