"""Real brokers on the loopback, which end with the test that asked for them."""
