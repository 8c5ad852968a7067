"""The locks and the cache of DVC."""
