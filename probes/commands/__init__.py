"""Commands that check params, estimate costs and import outputs."""
