"""The shared mathematics of networks: features, batches, settings and the training loop."""
