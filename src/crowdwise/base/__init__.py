"""What every method derives from: aggregators, learners, their traits and parameter checks."""
