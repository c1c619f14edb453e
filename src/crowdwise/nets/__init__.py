"""The shared maths of networks: features, batches, settings and the training loop."""
