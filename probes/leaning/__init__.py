"""Political leaning from pretraining data to downstream tasks (Feng et al. 2023)."""
