"""Real clients against the real receiver: SDKs, a collector, and a sender whose receivers are killed."""
