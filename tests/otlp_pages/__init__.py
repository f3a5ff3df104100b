"""What operators see of telemetry."""
