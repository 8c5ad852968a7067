"""Access to the locks and the cache of DVC."""
